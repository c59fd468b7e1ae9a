import type { Instruction, MemoryScope } from '../../../machine/index.js';
import type { InstructionRequest } from '../request.js';
import type { VisibleInstruction } from '../visible-instruction.js';
import { memoryScopes } from './access.js';

/** The scopes of membar by its own names. */
const membarScopes: Readonly<Record<string, MemoryScope>> = { cta: 'cta', gl: 'gpu', sys: 'sys' };

function fenceRow(
  name: string,
  make: (request: InstructionRequest) => Instruction | null,
): VisibleInstruction {
  return {
    name,
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, "membar", "fence"',
    lower: (request) => {
      const instruction = make(request);
      if (instruction === null) return { unsupported: 'a scope that is known' };
      return {
        isAligned: false,
        writes: [],
        reads: [],
        lends: [],
        issue: function* () {
          yield instruction;
        },
      };
    },
  };
}

/** The fence of the scope that an instruction names. */
function fenceOf(
  { modifiers, site }: InstructionRequest,
  scopes: Readonly<Record<string, MemoryScope>>,
): Instruction | null {
  const scope = modifiers.map((modifier) => scopes[modifier]).find((one) => one !== undefined);
  return scope === undefined ? null : { op: 'fence', scope, site };
}

/**
 * Fences. A fence that is only `.acquire` or only `.release` is treated as both: it orders no less here than PTX
 * says, and may order more.
 */
export const fenceRows: readonly VisibleInstruction[] = [
  fenceRow('fence', (request) => fenceOf(request, memoryScopes)),
  fenceRow('membar', (request) => fenceOf(request, membarScopes)),
  fenceRow('fence.mbarrier_init', ({ site }) => ({ op: 'fence.mbarrier_init', site })),
  fenceRow('fence.proxy.async', ({ site }) => ({ op: 'fence.proxy.async', site })),
  fenceRow('fence.proxy.async::generic', ({ site }) => ({ op: 'fence.proxy.async', site })),
  fenceRow('membar.proxy.async', ({ site }) => ({ op: 'fence.proxy.async', site })),
];
