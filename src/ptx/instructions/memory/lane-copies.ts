import { addressSpaceOf, type Instruction } from '../../../machine/index.js';
import type { InstructionRequest, Unsupported } from '../request.js';
import type { VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { hasLane, laneAddresses, operandNumber } from '../warp-registers.js';
import { integerConstant, slotsOf, wrongOperands } from '../operands.js';

const warpLanes = 32;

function lowerCopy({
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const hasPolicy = modifiers.some((modifier) => modifier.endsWith('::cache_hint'));
  const given = hasPolicy ? operands.slice(0, -1) : operands;
  const [destination, source, size, fourth] = given;
  const bytes = integerConstant(size);
  if (destination?.kind !== 'address' || source?.kind !== 'address' || bytes === null)
    return wrongOperands('[shared], [global], bytes');
  if (![4, 8, 16].includes(bytes) || (modifiers.includes('cg') && bytes !== 16))
    return { unsupported: `copies of ${bytes} bytes, which PTX has not` };
  // The fourth operand is a predicate under which the source is ignored, or the number of bytes to read.
  const ignores =
    fourth?.kind === 'negated' || (fourth?.kind === 'register' && fourth.slot.width === 'pred');
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(given),
    lends: [],
    issue: function* ({ registers, lanes }) {
      const sourceBytes = new Int32Array(warpLanes);
      for (let lane = 0; lane < warpLanes; lane++)
        if (hasLane(lanes, lane)) {
          const number = fourth === undefined ? bytes : operandNumber(registers, fourth, lane);
          sourceBytes[lane] = ignores ? (number === 0 ? bytes : 0) : Math.min(number, bytes);
        }
      yield {
        op: 'cp.async',
        destination: {
          space: 'shared::cta',
          addresses: laneAddresses(registers, destination, lanes),
          bytes,
        },
        source: { space: 'global', addresses: laneAddresses(registers, source, lanes), bytes },
        sourceBytes,
        site,
      };
    },
  };
}

/** An instruction of the warp without registers. */
function lowerPlain(
  make: (request: InstructionRequest) => Instruction | Unsupported,
): (request: InstructionRequest) => VisibleOperation | Unsupported {
  return (request) => {
    const instruction = make(request);
    if ('unsupported' in instruction) return instruction;
    return {
      isAligned: false,
      writes: [],
      reads: [],
      lends: [],
      issue: function* () {
        yield instruction;
      },
    };
  };
}

/** The arrival of lanes at one barrier, or at several, when their copies are complete. */
function lowerArrival({
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const [barrier] = operands;
  if (barrier?.kind !== 'address') return wrongOperands('[mbarrier]');
  const op = modifiers.includes('noinc')
    ? 'cp.async.mbarrier.arrive.noinc'
    : 'cp.async.mbarrier.arrive';
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf([barrier]),
    lends: [],
    issue: function* ({ registers, lanes }) {
      const threads = new Map<number, number>();
      for (const generic of laneAddresses(registers, barrier, lanes))
        if (generic >= 0) {
          const { space, address } = addressSpaceOf(generic);
          const at = space === 'shared' ? address : generic;
          threads.set(at, (threads.get(at) ?? 0) + 1);
        }
      for (const [address, count] of threads) yield { op, barrier: address, threads: count, site };
    },
  };
}

/** Copies that need no registers, their groups and their waits. */
export const laneCopyRows: readonly VisibleInstruction[] = [
  {
    name: 'cp.async',
    meaning: 'moves',
    evidence: 'isa',
    source: 'PTX ISA, "cp.async"',
    lower: lowerCopy,
  },
  {
    name: 'cp.async.commit_group',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, "cp.async.commit_group"',
    lower: lowerPlain(({ site }) => ({ op: 'cp.async.commit_group', site })),
  },
  {
    name: 'cp.async.wait_all',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, "cp.async.wait_group"',
    lower: lowerPlain(({ site }) => ({ op: 'cp.async.wait_all', site })),
  },
  {
    name: 'cp.async.wait_group',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, "cp.async.wait_group"',
    lower: lowerPlain(({ operands, site }) => {
      const pending = integerConstant(operands[0]);
      return pending === null
        ? wrongOperands('a number of groups')
        : { op: 'cp.async.wait_group', pending, site };
    }),
  },
  {
    name: 'cp.async.mbarrier.arrive',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, "cp.async.mbarrier.arrive"',
    lower: lowerArrival,
  },
];
