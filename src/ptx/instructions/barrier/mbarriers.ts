import type { Instruction } from '../../../machine/index.js';
import type { InstructionRequest, ResolvedOperand, Unsupported } from '../request.js';
import type { Slot } from '../slot.js';
import type { IssuingWarp, VisibleInstruction, VisibleOperation } from '../visible-instruction.js';
import { hasLane, lowestLane, operandNumber } from '../warp-registers.js';
import { slotsOf, wrongOperands } from '../operands.js';
import { ownOffset, sharedAddresses } from '../shared-addresses.js';

type Issue = (warp: IssuingWarp) => Generator<Instruction, void, void>;

const sourceOf = (name: string): string =>
  `PTX ISA, Parallel Synchronization and Communication Instructions: ${name}`;

function operation(
  { operands }: InstructionRequest,
  destination: ResolvedOperand | null,
  issue: Issue,
): VisibleOperation {
  const writes = destination === null ? [] : slotsOf([destination]);
  const sources = operands.filter((operand) => operand !== destination);
  return { isAligned: false, writes, reads: slotsOf(sources), lends: [], issue };
}

/** The name of an operand's mbarrier in findings. */
function nameOf(operand: ResolvedOperand, offset: number): string {
  const name = operand.kind === 'address' && operand.space !== null ? operand.name : null;
  return `${name ?? 'mbarrier'} at byte ${offset}`;
}

function lowerInit(request: InstructionRequest): VisibleOperation | Unsupported {
  const { operands, site } = request;
  const [address, count] = operands;
  if (operands.length !== 2 || address.kind !== 'address')
    return wrongOperands('an address and a count');
  return operation(request, null, function* (warp) {
    for (const group of sharedAddresses(warp, request, address)) {
      const barrier = ownOffset(warp, group.address);
      const expected = operandNumber(warp.registers, count, lowestLane(group.lanes));
      yield { op: 'mbarrier.init', barrier, count: expected, name: nameOf(address, barrier), site };
    }
  });
}

function lowerInval(request: InstructionRequest): VisibleOperation | Unsupported {
  const { operands, site } = request;
  if (operands.length !== 1 || operands[0].kind !== 'address') return wrongOperands('an address');
  return operation(request, null, function* (warp) {
    for (const { address } of sharedAddresses(warp, request, operands[0]))
      yield { op: 'mbarrier.inval', barrier: ownOffset(warp, address), site };
  });
}

/** Writes a state, which is the phase below the missing arrivals, to lanes. */
function writeState(warp: IssuingWarp, slot: Slot, lanes: number, state: Uint32Array): void {
  const words = warp.registers.words(slot);
  for (let lane = 0; lane < 32; lane++)
    if (hasLane(lanes, lane)) {
      words[2 * lane] = state[0];
      words[2 * lane + 1] = state[1];
    }
}

/** Lowers an arrival, whose destination is a state or `_`; without one, the first operand is the address. */
function lowerArrive(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const hasDestination = operands[0]?.kind !== 'address';
  const destination = hasDestination ? operands[0] : null;
  const slot = destination?.kind === 'register' ? destination.slot : null;
  const [address, amount] = operands.slice(hasDestination ? 1 : 0);
  if (address?.kind !== 'address') return wrongOperands('a state or _, an address, a count');
  const mustNotComplete = modifiers.includes('noComplete');
  if (mustNotComplete && amount === undefined) return wrongOperands('a state, an address, a count');
  const expects = modifiers.includes('expect_tx');
  const drops = modifiers.includes('arrive_drop');
  if (expects && amount === undefined) return wrongOperands('an address and bytes');
  return operation(request, destination, function* (warp) {
    for (const { lanes, address: barrier } of sharedAddresses(warp, request, address)) {
      const state = new Uint32Array(2);
      const returned = slot === null ? {} : { state };
      if (expects) {
        // Each lane expects bytes of its own, and arrives once.
        for (let lane = 0; lane < 32; lane++)
          if (hasLane(lanes, lane)) {
            const bytes = operandNumber(warp.registers, amount, lane);
            yield { op: 'mbarrier.arrive.expect_tx', barrier, bytes, drops, site, ...returned };
          }
      } else {
        const count =
          amount === undefined ? 1 : operandNumber(warp.registers, amount, lowestLane(lanes));
        const arrival = { barrier, lanes, count, drops, mustNotComplete, site };
        yield { op: 'mbarrier.arrive', ...arrival, ...returned };
      }
      if (slot !== null) writeState(warp, slot, lanes, state);
    }
  });
}

const phaseOf = (state: number): number => state % 2 ** 32;

/** `pending_count`: the arrivals that a phase lacked before the arrival that returned a state. */
function lowerPendingCount(request: InstructionRequest): VisibleOperation | Unsupported {
  const [destination, state] = request.operands;
  if (destination?.kind !== 'register' || state === undefined)
    return wrongOperands('a register, a state');
  return operation(request, destination, function* (warp) {
    const words = warp.registers.words(destination.slot);
    for (let lane = 0; lane < 32; lane++)
      if (hasLane(warp.lanes, lane))
        words[lane] = Math.floor(operandNumber(warp.registers, state, lane) / 2 ** 32);
  });
}

/**
 * `try_wait` is assumed to be repeated until it returns true, so that its predicate is true and a time limit is never
 * reached: code for a false predicate is not executed.
 */
function lowerTryWait(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [destination, address, awaited] = operands;
  if (destination?.kind !== 'register' || address?.kind !== 'address' || awaited === undefined)
    return wrongOperands('a predicate, an address, a state or a parity');
  const isParity = modifiers.includes('parity');
  return operation(request, destination, function* (warp) {
    for (const { lanes, address: cluster } of sharedAddresses(warp, request, address)) {
      const barrier = ownOffset(warp, cluster);
      const value = operandNumber(warp.registers, awaited, lowestLane(lanes));
      if (isParity)
        yield {
          op: 'mbarrier.try_wait.parity',
          barrier,
          parity: (value & 1) as 0 | 1,
          site,
        };
      else yield { op: 'mbarrier.try_wait', barrier, phase: phaseOf(value), site };
      const words = warp.registers.words(destination.slot);
      for (let lane = 0; lane < 32; lane++) if (hasLane(lanes, lane)) words[lane] = 0xffffffff;
    }
  });
}

/** `test_wait` reports the current state: a lane's predicate tells whether the phase is complete. */
function lowerTestWait(request: InstructionRequest): VisibleOperation | Unsupported {
  const { modifiers, operands, site } = request;
  const [destination, address, awaited] = operands;
  if (destination?.kind !== 'register' || address?.kind !== 'address' || awaited === undefined)
    return wrongOperands('a predicate, an address, a state or a parity');
  const isParity = modifiers.includes('parity');
  return operation(request, destination, function* (warp) {
    for (const { lanes, address: cluster } of sharedAddresses(warp, request, address)) {
      const value = operandNumber(warp.registers, awaited, lowestLane(lanes));
      const result = new Uint32Array(1);
      yield {
        op: 'mbarrier.test_wait',
        barrier: ownOffset(warp, cluster),
        awaited: isParity ? { parity: (value & 1) as 0 | 1 } : { phase: phaseOf(value) },
        result,
        site,
      };
      const words = warp.registers.words(destination.slot);
      for (let lane = 0; lane < 32; lane++)
        if (hasLane(lanes, lane)) words[lane] = result[0] === 1 ? 0xffffffff : 0;
    }
  });
}

/** `expect_tx` without an arrival: each lane expects its own bytes. */
function lowerExpect(request: InstructionRequest): VisibleOperation | Unsupported {
  const { operands, site } = request;
  const [address, amount] = operands;
  if (address?.kind !== 'address' || amount === undefined)
    return wrongOperands('an address and bytes');
  return operation(request, null, function* (warp) {
    for (const { lanes, address: barrier } of sharedAddresses(warp, request, address))
      for (let lane = 0; lane < 32; lane++)
        if (hasLane(lanes, lane)) {
          const bytes = operandNumber(warp.registers, amount, lane);
          yield { op: 'mbarrier.expect_tx', barrier, bytes, site };
        }
  });
}

/** mbarrier instructions; others are refused by name. */
export const mbarrierInstructions: readonly VisibleInstruction[] = (
  [
    ['mbarrier.init', 'none', lowerInit],
    ['mbarrier.inval', 'none', lowerInval],
    ['mbarrier.arrive', ['none', 'decides'], lowerArrive],
    ['mbarrier.arrive_drop', ['none', 'decides'], lowerArrive],
    ['mbarrier.expect_tx', 'none', lowerExpect],
    ['mbarrier.pending_count', 'decides', lowerPendingCount],
    ['mbarrier.test_wait', 'decides', lowerTestWait],
    ['mbarrier.try_wait', 'decides', lowerTryWait],
  ] as const
).map(([name, meaning, lower]) => ({
  name,
  meaning,
  evidence: 'isa',
  source: sourceOf(name),
  lower,
}));
