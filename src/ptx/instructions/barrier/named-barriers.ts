import type { InstructionRequest, Unsupported } from '../request.js';
import type { VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { hasLane, operandNumber } from '../warp-registers.js';
import { slotsOf, uniformNumber, wrongOperands } from '../operands.js';

const source = 'PTX ISA, Parallel Synchronization and Communication Instructions: bar, barrier';

/**
 * `bar.sync a{, b}`, `bar.arrive a, b` and their `barrier` forms; diverged lanes may execute those without `.aligned`.
 * Identifier and count may be in registers, the same in all lanes. Without a count, all threads of the CTA that have not
 * ended take part.
 */
function lower(request: InstructionRequest): VisibleOperation | Unsupported {
  const { opcode, modifiers, operands, site } = request;
  const kind = modifiers.find((modifier) => ['sync', 'arrive', 'red'].includes(modifier));
  if (kind === 'red') return lowerReduction(request);
  if (kind === undefined || operands.length < 1 || operands.length > 2)
    return wrongOperands('a barrier, and a count of threads');
  if (kind === 'arrive' && operands.length === 1) return wrongOperands('a barrier and a count');
  return {
    isAligned: opcode === 'bar' || modifiers.includes('aligned'),
    writes: [],
    reads: slotsOf(operands),
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

/**
 * The result that each lane gets of a reduction, from the number of lanes of all warps and of those whose predicate is
 * true.
 */
const reductions: Readonly<Record<string, (lanes: number, trueLanes: number) => number>> = {
  popc: (_, trueLanes) => trueLanes,
  and: (lanes, trueLanes) => (trueLanes === lanes ? 0xffffffff : 0),
  or: (_, trueLanes) => (trueLanes > 0 ? 0xffffffff : 0),
};

/** `bar.red.popc.u32 d, a{, b}, {!}c` and `bar.red.and.pred p, a{, b}, {!}c`. */
function lowerReduction({
  opcode,
  modifiers,
  operands,
  site,
}: InstructionRequest): VisibleOperation | Unsupported {
  const name = modifiers.find((modifier) => modifier in reductions);
  const [destination, barrier, ...rest] = operands;
  const predicate = rest.pop();
  const [count] = rest;
  if (name === undefined || destination?.kind !== 'register' || predicate === undefined)
    return wrongOperands('a register, a barrier, a count of threads, a predicate');
  return {
    isAligned: opcode === 'bar' || modifiers.includes('aligned'),
    writes: [destination.slot],
    reads: slotsOf(operands.slice(1)),
    lends: [],
    issue: function* (warp) {
      const { registers, lanes } = warp;
      let trueLanes = 0;
      for (let lane = 0; lane < 32; lane++)
        if (hasLane(lanes, lane) && operandNumber(registers, predicate, lane) !== 0)
          trueLanes |= 1 << lane;
      const result = new Uint32Array(2);
      yield {
        op: 'bar.red',
        barrier: uniformNumber(warp, barrier),
        threads: count === undefined ? 'all' : uniformNumber(warp, count),
        lanes: lanes >>> 0,
        trueLanes: trueLanes >>> 0,
        result,
        site,
      };
      const words = registers.words(destination.slot);
      for (let lane = 0; lane < 32; lane++)
        if (hasLane(lanes, lane)) words[lane] = reductions[name](result[0], result[1]);
    },
  };
}

/** `bar.warp.sync membermask`: the lanes that execute it together count as the warp. */
function lowerWarpBarrier({ operands, site }: InstructionRequest): VisibleOperation {
  return {
    isAligned: false,
    writes: [],
    reads: slotsOf(operands),
    lends: [],
    issue: function* ({ lanes }) {
      yield { op: 'bar.warp.sync', lanes, site };
    },
  };
}

/** Barriers of the threads of a CTA, and of a warp. */
export const namedBarrierInstructions: readonly VisibleInstruction[] = [
  { name: 'bar', meaning: ['none', 'decides'], evidence: 'isa', source, lower },
  { name: 'barrier', meaning: ['none', 'decides'], evidence: 'isa', source, lower },
  {
    name: 'bar.warp.sync',
    meaning: 'none',
    evidence: 'isa',
    source: 'PTX ISA, Parallel Synchronization and Communication Instructions: bar.warp.sync',
    lower: lowerWarpBarrier,
  },
];
