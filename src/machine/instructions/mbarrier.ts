import {
  allLanes,
  clusterAddress,
  laneCount,
  splitClusterAddress,
  type LaneMask,
} from '../isa/index.js';
import {
  arriveOn,
  completeTransaction,
  createMbarrier,
  expectTransaction,
  hasCompleted,
  type Actor,
  type ArrivalResult,
  type Mbarrier,
} from '../ordering/index.js';
import { hasExited, report, type MachineState, type WarpState } from '../state.js';
import { alwaysReady, movesNothing, noDetails, type InstructionRecords } from './record.js';

/** mbarrier objects lie at multiples of 8 bytes, and count arrivals in 20 bits. */
const barrierAlignment = 8;
const mostArrivals = 2 ** 20 - 1;
/** Bytes that a phase may lack, which are counted in 20 bits and a sign. */
const mostBytes = 2 ** 20 - 1;

/** How a trace tells the lanes that arrive: the usual ones by name, others by their number. */
function describeLanes(lanes: LaneMask): string | number {
  if (lanes === allLanes) return 'all';
  const count = laneCount(lanes);
  return count === 1 ? 'elected' : count;
}

/** What a barrier is called, and what its phase has and lacks. */
function describeProgress(barrier: Mbarrier): string {
  const { name, pending, expected, transactionBytes, phase, arrived } = barrier;
  const bytes = transactionBytes === 0 ? '' : `, ${transactionBytes} bytes outstanding`;
  const from = arrived.length === 0 ? '' : ` (from ${[...new Set(arrived)].join(', ')})`;
  return `${name}, in phase ${phase} with ${expected - pending} of ${expected} arrivals${from}${bytes}`;
}

/** The barrier at a cluster address; reports when there is none. */
function findBarrier(machine: MachineState, { warp }: Actor, address: number): Mbarrier | null {
  const { rank, offset } = splitClusterAddress(address);
  const cta = machine.ctas[rank];
  const barrier = cta?.mbarriers.get(offset);
  if (cta === undefined || barrier === undefined) {
    report(machine, warp, 'barrier-initialisation', `no mbarrier at ${offset} of CTA ${rank}`);
    return null;
  }
  if (hasExited(cta))
    report(machine, warp, 'exited-cta', `arrives on ${barrier.name} of CTA ${rank}`);
  return barrier;
}

function settled(
  machine: MachineState,
  actor: Actor,
  barrier: Mbarrier,
  result: ArrivalResult,
): void {
  if (result === 'over-arrival')
    report(
      machine,
      actor.warp,
      'over-arrival',
      `${barrier.name} of CTA ${barrier.cta} expects ${barrier.expected} arrivals and has them`,
    );
  if (result !== 'completed') return;
  barrier.completedAt = machine.now;
  machine.tracker?.complete(machine, barrier);
}

/** Arrivals of an actor on a barrier, by its cluster address. */
export function arrive(
  machine: MachineState,
  actor: Actor,
  address: number,
  count: number,
  {
    expectedBytes = 0,
    state,
    drops = false,
  }: {
    readonly expectedBytes?: number;
    readonly state?: Uint32Array | undefined;
    readonly drops?: boolean | undefined;
  } = {},
): void {
  const barrier = findBarrier(machine, actor, address);
  if (barrier === null) return;
  if (state !== undefined) state[0] = barrier.phase;
  if (count <= barrier.pending) {
    machine.tracker?.arrive(machine, actor, barrier, 'arrival');
    if (drops) barrier.expected -= count;
  }
  settled(machine, actor, barrier, arriveOn(barrier, count, actor.warp.name, expectedBytes));
}

/** The current phase of a barrier, by its cluster address, is to have so many arrivals more than it expects. */
export function expectArrivals(
  machine: MachineState,
  warp: WarpState,
  address: number,
  count: number,
): void {
  const barrier = findBarrier(machine, { warp, order: null }, address);
  if (barrier !== null) barrier.pending += count;
}

/** Bytes that an operation has brought, counted on a barrier. */
export function completeBytes(
  machine: MachineState,
  actor: Actor,
  address: number,
  bytes: number,
): void {
  const barrier = findBarrier(machine, actor, address);
  if (barrier === null) return;
  machine.tracker?.arrive(machine, actor, barrier, 'bytes');
  settled(machine, actor, barrier, completeTransaction(barrier, bytes));
}

/** Reports bytes that no phase can expect. */
function checkBytes(machine: MachineState, warp: WarpState, bytes: number): void {
  if (Number.isInteger(bytes) && bytes >= 0 && bytes <= mostBytes) return;
  const what = `expects ${bytes} bytes; at most ${mostBytes} are possible`;
  report(machine, warp, 'instruction-shape', what);
}

/**
 * mbarrier instructions. What they do to the barrier is followed as arrivals and waits, not as accesses to
 * the word that it is. Source: PTX ISA, "Parallel Synchronization and Communication Instructions:
 * mbarrier". try_wait is taken to be tried until it returns true; test_wait gives what is, so that the run speaks for
 * its own schedule alone.
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
    },
  },
  'mbarrier.arrive': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    describe: ({ barrier, lanes }) => ({ barrier, threads: describeLanes(lanes) }),
    execute: (machine, warp, { barrier, lanes, count = 1, state, drops }) => {
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
    describe: ({ barrier, bytes }) => ({ barrier, bytes }),
    execute: (machine, warp, { barrier, bytes, state, drops }) => {
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
      const actor = { warp, order: null };
      const barrier = findBarrier(machine, actor, address);
      if (barrier === null) return;
      machine.tracker?.arrive(machine, actor, barrier, 'expectation');
      settled(machine, actor, barrier, expectTransaction(barrier, bytes));
    },
  },
  'mbarrier.test_wait': {
    ready: alwaysReady,
    isWait: false,
    ...movesNothing,
    describe: ({ barrier, awaited }) => ({ barrier, ...awaited }),
    execute: (machine, warp, { barrier: offset, awaited, result }) => {
      const address = clusterAddress(warp.cta.rank, offset);
      const barrier = findBarrier(machine, { warp, order: null }, address);
      if (barrier === null) return;
      const isComplete =
        'phase' in awaited ? barrier.phase > awaited.phase : hasCompleted(barrier, awaited.parity);
      result[0] = isComplete ? 1 : 0;
      const what = `tests ${barrier.name} without waiting; in another schedule the answer may be another`;
      report(machine, warp, 'schedule-dependent', what);
      if (isComplete) machine.tracker?.observe(machine, warp, barrier);
    },
  },
  'mbarrier.try_wait': {
    ready: {
      isReady: (_machine, { cta }, { barrier: offset, phase }) => {
        const barrier = cta.mbarriers.get(offset);
        return barrier === undefined || barrier.phase > phase;
      },
      waitsFor: (_machine, { cta }, { barrier: offset, phase }) =>
        `the end of phase ${phase} of ${describeProgress(cta.mbarriers.get(offset)!)}`,
      readyTime: ({ rates }, { cta }, { barrier }) =>
        (cta.mbarriers.get(barrier)?.completedAt ?? 0) + rates.signalLatency,
    },
    isWait: true,
    ...movesNothing,
    describe: ({ barrier, phase }) => ({ barrier, phase }),
    execute: (machine, warp, { barrier: offset }) => {
      const address = clusterAddress(warp.cta.rank, offset);
      const barrier = findBarrier(machine, { warp, order: null }, address);
      if (barrier !== null) machine.tracker?.observe(machine, warp, barrier);
    },
  },
  'mbarrier.try_wait.parity': {
    ready: {
      isReady: (_machine, { cta }, { barrier: offset, parity }) => {
        const barrier = cta.mbarriers.get(offset);
        return barrier === undefined || hasCompleted(barrier, parity);
      },
      waitsFor: (_machine, { cta }, { barrier: offset, parity }) => {
        return `parity ${parity} of ${describeProgress(cta.mbarriers.get(offset)!)}`;
      },
      readyTime: ({ rates }, { cta }, { barrier }) => {
        const { completedAt, phase } = cta.mbarriers.get(barrier) ?? { completedAt: 0, phase: 0 };
        return phase === 0 ? 0 : completedAt + rates.signalLatency;
      },
    },
    isWait: true,
    ...movesNothing,
    describe: ({ barrier, parity }) => ({ barrier, parity }),
    execute: (machine, warp, { barrier: offset }) => {
      const address = clusterAddress(warp.cta.rank, offset);
      const barrier = findBarrier(machine, { warp, order: null }, address);
      if (barrier !== null) machine.tracker?.observe(machine, warp, barrier);
    },
  },
};
