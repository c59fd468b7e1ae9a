import type { InstructionRequest, Unsupported } from '../request.js';
import type { VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { registersOf, uniformNumber, wrongOperands } from './operands.js';

const source = 'PTX ISA, Parallel Synchronization and Communication Instructions: bar, barrier';

/**
 * `bar.sync a{, b}`, `bar.arrive a, b` and their `barrier` forms, of which those without `.aligned` may be executed by lanes
 * that have diverged. Identifier and count may stand in registers, the same in all lanes. Without a count all threads of the
 * CTA take part that have not ended.
 */
function lower(request: InstructionRequest): VisibleOperation | Unsupported {
  const { opcode, modifiers, operands, site } = request;
  const kind = modifiers.find((modifier) => ['sync', 'arrive', 'red'].includes(modifier));
  if (kind === 'red') return { unsupported: 'a reduction at a barrier' };
  if (kind === undefined || operands.length < 1 || operands.length > 2)
    return wrongOperands('a barrier, and a count of threads');
  if (kind === 'arrive' && operands.length === 1) return wrongOperands('a barrier and a count');
  return {
    isAligned: opcode === 'bar' || modifiers.includes('aligned'),
    writes: [],
    reads: registersOf(operands),
    lends: [],
    issue: function* (warp) {
      const [barrier, threads] = operands.map((operand) => uniformNumber(warp, operand));
      yield {
        op: kind === 'sync' ? 'bar.sync' : 'bar.arrive',
        barrier,
        threads: threads ?? 'all',
        site,
      };
    },
  };
}

function fence(op: 'bar.warp.sync'): VisibleInstruction['lower'] {
  return ({ operands, site }) => ({
    isAligned: false,
    writes: [],
    reads: registersOf(operands),
    lends: [],
    issue: function* () {
      yield { op, site };
    },
  });
}

/** Barriers of the threads of a CTA, and of a warp. */
export const namedBarrierInstructions: readonly VisibleInstruction[] = [
  { name: 'bar', evidence: 'isa', source, lower },
  { name: 'barrier', evidence: 'isa', source, lower },
  {
    name: 'bar.warp.sync',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: bar.warp.sync',
    lower: fence('bar.warp.sync'),
  },
];
