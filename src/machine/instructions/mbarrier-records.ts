import {
  allLanes,
  clusterAddress,
  type Effect,
  laneCount,
  type InstructionOf,
  type LaneMask,
} from '../isa/index.js';
import {
  copyClock,
  createMbarrier,
  hasCompleted,
  mostTransactionBytes,
  type Mbarrier,
} from '../ordering/index.js';
import { report, type MachineState, type WarpState } from '../state.js';
import { informLanes, tellLanes } from './memory/follow-lanes.js';
import { arrive, expectBytes, findBarrier } from './mbarrier.js';
import {
  alwaysReady,
  movesNothing,
  noDetails,
  type InstructionRecord,
  type InstructionRecords,
} from './record.js';

/** mbarrier objects lie at multiples of 8 bytes, and count arrivals in 20 bits. */
const barrierAlignment = 8;
const mostArrivals = 2 ** 20 - 1;

/** Name of the arriving lanes in a trace: the usual ones by name, others by their number. */
function describeLanes(lanes: LaneMask): string | number {
  if (lanes === allLanes) return 'all';
  const count = laneCount(lanes);
  return count === 1 ? 'elected' : count;
}

/** The name of a barrier, and the arrivals and bytes that its phase has and lacks. */
function describeProgress(barrier: Mbarrier): string {
  const { name, pending, expected, transactionBytes, expectedBytes, phase, arrived } = barrier;
  const bytes =
    expectedBytes === 0 && transactionBytes === 0
      ? ''
      : ` and ${expectedBytes - transactionBytes} of ${expectedBytes} bytes`;
  const from = arrived.length === 0 ? '' : ` (from ${[...new Set(arrived)].join(', ')})`;
  return `${name}, in phase ${phase} with ${expected - pending} of ${expected} arrivals${from}${bytes}`;
}

/** Reports bytes that no phase can expect. */
function checkBytes(machine: MachineState, warp: WarpState, bytes: number): void {
  if (Number.isInteger(bytes) && bytes >= 0 && bytes <= mostTransactionBytes) return;
  const what = `expects ${bytes} bytes; at most ${mostTransactionBytes} are possible`;
  report(machine, warp, 'instruction-shape', what);
}

/** Reports an arrival that must leave the phase incomplete but would complete it. */
function checkIncomplete(
  machine: MachineState,
  warp: WarpState,
  address: number,
  count: number,
): void {
  const barrier = findBarrier(machine, { warp, order: null }, address);
  if (barrier === null || count < barrier.pending) return;
  const what = `${count} arrivals that must not complete a phase (.noComplete), at ${describeProgress(barrier)}`;
  report(machine, warp, 'instruction-shape', what);
}

/** An arrival may return the state of its barrier. */
function meaningOfState({ state }: { readonly state?: Uint32Array }): Effect {
  return state === undefined ? 'none' : 'decides';
}

type Wait = 'mbarrier.try_wait' | 'mbarrier.try_wait.parity';
type Awaited = InstructionOf<'mbarrier.test_wait'>['awaited'];

function awaitedBy(instruction: InstructionOf<Wait>): Awaited {
  return 'phase' in instruction ? { phase: instruction.phase } : { parity: instruction.parity };
}

/** Whether the phase that a wait names is complete. */
function isOver(barrier: Mbarrier, awaited: Awaited): boolean {
  return 'phase' in awaited ? barrier.phase > awaited.phase : hasCompleted(barrier, awaited.parity);
}

/** Waits for the end of a phase that a state or a parity names. */
const wait: InstructionRecord<Wait> = {
  ready: {
    isReady: (_machine, { cta }, instruction) => {
      const barrier = cta.mbarriers.get(instruction.barrier);
      return barrier === undefined || isOver(barrier, awaitedBy(instruction));
    },
    waitsFor: (_machine, { cta }, instruction) => {
      const awaited = awaitedBy(instruction);
      const what =
        'phase' in awaited ? `the end of phase ${awaited.phase}` : `parity ${awaited.parity}`;
      return `${what} of ${describeProgress(cta.mbarriers.get(instruction.barrier)!)}`;
    },
    readyTime: ({ rates }, { cta }, { barrier }) => {
      // The parity of the phase before the first is complete from the start.
      const { completedAt, phase } = cta.mbarriers.get(barrier) ?? { completedAt: 0, phase: 0 };
      return phase === 0 ? 0 : completedAt + rates.signalLatency;
    },
  },
  isWait: true,
  ...movesNothing,
  describe: (instruction) => ({ barrier: instruction.barrier, ...awaitedBy(instruction) }),
  execute: (machine, warp, { barrier: offset }) => {
    const address = clusterAddress(warp.cta.rank, offset);
    const barrier = findBarrier(machine, { warp, order: null }, address);
    if (barrier === null) return;
    machine.tracker?.observe(machine, warp, barrier);
    informLanes(machine, warp, allLanes);
  },
};

/**
 * mbarrier instructions. Their effects on the barrier are followed as arrivals and waits; its words are its own from its initialisation to
 * its end, and no other access may touch them. Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
 * try_wait is taken to be tried until it returns true; test_wait returns the present state, so that the run speaks for its own schedule
 * alone.
 */
export const mbarrierRecords: InstructionRecords<
  | 'mbarrier.init'
  | 'mbarrier.inval'
  | 'mbarrier.arrive'
  | 'mbarrier.arrive.expect_tx'
  | 'mbarrier.expect_tx'
  | 'mbarrier.test_wait'
  | 'mbarrier.try_wait'
  | 'mbarrier.try_wait.parity'
> = {
  'mbarrier.init': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    describe: noDetails,
    execute: (machine, warp, { barrier: offset, count, name }) => {
      const { cta } = warp;
      if (offset % barrierAlignment !== 0)
        report(machine, warp, 'misaligned', `${name} at ${offset}, no multiple of 8`);
      if (!(offset >= 0 && offset + barrierAlignment <= cta.shared.limitBytes))
        report(machine, warp, 'shared-overflow', `${name} at ${offset}`);
      if (!(Number.isInteger(count) && count >= 1 && count <= mostArrivals))
        report(machine, warp, 'barrier-initialisation', `${name} expects ${count} arrivals`);
      if (cta.mbarriers.has(offset))
        report(machine, warp, 'barrier-initialisation', `${name} is a live mbarrier already`);
      const barrier = createMbarrier(name, cta.rank, offset, count);
      cta.mbarriers.set(offset, barrier);
      cta.endedMbarriers.delete(offset);
      machine.tracker?.initialise(machine, warp, barrier);
    },
  },
  'mbarrier.inval': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    describe: noDetails,
    execute: (machine, warp, { barrier: offset }) => {
      const barrier = warp.cta.mbarriers.get(offset);
      if (barrier === undefined)
        report(machine, warp, 'barrier-initialisation', `no mbarrier at ${offset} to end`);
      else machine.tracker?.invalidate(machine, warp, barrier);
      warp.cta.mbarriers.delete(offset);
      if (warp.order !== null) warp.cta.endedMbarriers.set(offset, copyClock(warp.order.clock));
    },
  },
  'mbarrier.arrive': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    meaning: meaningOfState,
    describe: ({ barrier, lanes }) => ({ barrier, threads: describeLanes(lanes) }),
    execute: (machine, warp, { barrier, lanes, count = 1, state, drops, mustNotComplete }) => {
      tellLanes(machine, warp, lanes);
      if (mustNotComplete === true)
        checkIncomplete(machine, warp, barrier, count * laneCount(lanes));
      if (!(Number.isInteger(count) && count >= 1 && count <= mostArrivals))
        report(
          machine,
          warp,
          'instruction-shape',
          `${count} arrivals; 1 to ${mostArrivals} are due`,
        );
      else
        arrive(machine, { warp, order: null }, barrier, count * laneCount(lanes), { state, drops });
    },
  },
  'mbarrier.arrive.expect_tx': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    meaning: meaningOfState,
    describe: ({ barrier, bytes }) => ({ barrier, bytes }),
    execute: (machine, warp, { barrier, bytes, state, drops }) => {
      tellLanes(machine, warp, allLanes);
      checkBytes(machine, warp, bytes);
      arrive(machine, { warp, order: null }, barrier, 1, { expectedBytes: bytes, state, drops });
    },
  },
  'mbarrier.expect_tx': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    describe: ({ barrier, bytes }) => ({ barrier, bytes }),
    execute: (machine, warp, { barrier: address, bytes }) => {
      checkBytes(machine, warp, bytes);
      expectBytes(machine, warp, address, bytes);
    },
  },
  'mbarrier.test_wait': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    meaning: 'decides',
    describe: ({ barrier, awaited }) => ({ barrier, ...awaited }),
    execute: (machine, warp, { barrier: offset, awaited, result }) => {
      const address = clusterAddress(warp.cta.rank, offset);
      const barrier = findBarrier(machine, { warp, order: null }, address);
      if (barrier === null) return;
      const isComplete = isOver(barrier, awaited);
      result[0] = isComplete ? 1 : 0;
      const what = `tests ${barrier.name} without waiting; in another schedule the answer may be another`;
      report(machine, warp, 'schedule-dependent', what);
      if (!isComplete) {
        barrier.tests.push(machine.step);
        return;
      }
      if (barrier.phase > 0) machine.onDependence({ cta: undefined, step: barrier.completedStep });
      machine.tracker?.observe(machine, warp, barrier);
      informLanes(machine, warp, allLanes);
    },
  },
  'mbarrier.try_wait': wait,
  'mbarrier.try_wait.parity': wait,
};
