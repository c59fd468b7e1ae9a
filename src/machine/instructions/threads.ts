import { allLanes, laneCount, warpLanes, type InstructionOf } from '../isa/index.js';
import {
  arriveAtNamed,
  createNamedBarrier,
  leaveOutThreads,
  type NamedBarrier,
  type OrderTracker,
} from '../ordering/index.js';
import {
  report,
  type Continuation,
  type CtaState,
  type MachineState,
  type WarpState,
} from '../state.js';
import { meetLanes } from './memory/follow-lanes.js';
import {
  alwaysReady,
  movesNothing,
  noDetails,
  type InstructionRecord,
  type InstructionRecords,
} from './record.js';

/** A CTA has named barriers 0 to 15. */
const namedBarriers = 16;

/** Threads of a CTA that have not ended, taken warp by warp. */
function liveThreads({ warps }: CtaState): number {
  return warps.filter(({ current }) => current !== null).length * warpLanes;
}

/**
 * Removes a warp that has ended: the barriers of all threads, of its CTA and of the cluster, wait for the
 * others alone.
 */
export function leaveBarriers(machine: MachineState, { cta, clusterGeneration }: WarpState): void {
  const { clusterBarrier } = machine;
  const left = [...cta.namedBarriers.values()].filter(
    ({ isOfAll, arrived }) => isOfAll && arrived > 0,
  );
  if (clusterGeneration === clusterBarrier.generation) clusterBarrier.leaving += warpLanes;
  else left.push(clusterBarrier);
  for (const barrier of left)
    if (leaveOutThreads(barrier, warpLanes) === 'completed') {
      barrier.completedAt = machine.now;
      machine.tracker?.completeNamed(barrier);
    }
}

function namedBarrier(machine: MachineState, warp: WarpState, id: number): NamedBarrier {
  const { namedBarriers: known } = warp.cta;
  if (!(Number.isInteger(id) && id >= 0 && id < namedBarriers))
    report(machine, warp, 'instruction-shape', `there is no named barrier ${id}`);
  let barrier = known.get(id);
  if (barrier === undefined) {
    barrier = createNamedBarrier(id);
    known.set(id, barrier);
  }
  return barrier;
}

/** Arrives; returns the generation that the arrival is counted to, or null when it is not. */
function arrive(
  machine: MachineState,
  warp: WarpState,
  barrier: NamedBarrier,
  count: number | 'all',
  how: { readonly waits: boolean; readonly isRelaxed: boolean },
): number | null {
  const { generation } = barrier;
  const threads = count === 'all' ? liveThreads(warp.cta) : count;
  if (threads % warpLanes !== 0 || threads < warpLanes)
    report(machine, warp, 'instruction-shape', `${threads} threads are no whole warps`);
  machine.tracker?.arriveAtNamed(machine, warp, barrier, how);
  meetLanes(machine, warp, allLanes);
  if (barrier.arrived === 0) barrier.isOfAll = count === 'all';
  const result = arriveAtNamed(barrier, warpLanes, threads, warp.name);
  if (result === 'completed') {
    barrier.completedAt = machine.now;
    machine.tracker?.completeNamed(barrier);
  }
  if (result === 'over-arrival')
    report(machine, warp, 'over-arrival', `barrier ${barrier.id} has its ${threads} threads`);
  if (result === 'mismatch')
    report(machine, warp, 'phase', `barrier ${barrier.id} is in use for other numbers of threads`);
  return result === 'over-arrival' || result === 'mismatch' ? null : generation;
}

const waiting = { waits: true, isRelaxed: false };
const passing = { waits: false, isRelaxed: false };
const relaxed = { waits: true, isRelaxed: true };

function waitFor(
  machine: MachineState,
  warp: WarpState,
  barrier: NamedBarrier,
  name: string,
  generation: number,
): Continuation {
  return {
    isReady: () => barrier.generation > generation,
    resume: () => machine.tracker?.leaveNamed(warp, barrier, generation),
    waitsFor: () =>
      `${name} with ${barrier.arrived} of ${barrier.threads} threads (${[...new Set(barrier.who)].join(', ')})`,
    readyTime: () => barrier.completedAt + machine.rates.signalLatency,
  };
}

function arriveAtCluster(
  machine: MachineState,
  warp: WarpState,
  how: { readonly waits: boolean; readonly isRelaxed: boolean },
): void {
  const { clusterBarrier } = machine;
  if (warp.clusterGeneration !== null)
    report(machine, warp, 'phase', 'arrives at the barrier of the cluster twice without a wait');
  warp.clusterGeneration = arrive(machine, warp, clusterBarrier, clusterBarrier.threads, how);
}

type Fence =
  | 'fence.mbarrier_init'
  | 'fence.proxy.async'
  | 'tcgen05.fence::before_thread_sync'
  | 'tcgen05.fence::after_thread_sync';

/**
 * The record of a fence. It computes nothing: the tracker follows the order that it gives, so that a
 * missing one shows as a race.
 */
function fence<Op extends Fence>(
  name: Parameters<OrderTracker['fence']>[1],
): InstructionRecord<Op> {
  return {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: ({ tracker }, warp) => tracker?.fence(warp, name),
  };
}

const describeBarrier = ({
  barrier,
  threads,
}: InstructionOf<'bar.sync' | 'bar.arrive' | 'bar.red'>) => ({
  barrier,
  threads,
});

/**
 * Barriers of the threads of a CTA and of a cluster, fences, and instructions that concern a warp alone.
 * The lanes of a warp are taken to be converged, so that waits for them end at once. Source: PTX ISA,
 * `bar`, `barrier.cluster`, `bar.warp.sync`, `fence`, `fence.proxy`, `tcgen05.fence`.
 */
export const threadRecords: InstructionRecords<
  | 'bar.sync'
  | 'bar.arrive'
  | 'bar.red'
  | 'bar.warp.sync'
  | 'barrier.cluster.arrive'
  | 'barrier.cluster.arrive.relaxed'
  | 'barrier.cluster.wait'
  | Fence
> = {
  'bar.sync': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: true,
    describe: describeBarrier,
    execute: (machine, warp, { barrier: id, threads }) => {
      const barrier = namedBarrier(machine, warp, id);
      const generation = arrive(machine, warp, barrier, threads, waiting);
      if (generation === null) return;
      return waitFor(machine, warp, barrier, `barrier ${id}`, generation);
    },
  },
  'bar.arrive': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: describeBarrier,
    execute: (machine, warp, { barrier, threads }) => {
      arrive(machine, warp, namedBarrier(machine, warp, barrier), threads, passing);
    },
  },
  'bar.red': {
    ...movesNothing,
    meaning: 'decides',
    ready: alwaysReady,
    isWait: true,
    describe: describeBarrier,
    execute: (machine, warp, { barrier: id, threads, lanes, trueLanes, result }) => {
      const barrier = namedBarrier(machine, warp, id);
      // The sums that this generation shares: the next one has its own.
      const { reduced } = barrier;
      reduced.lanes += laneCount(lanes);
      reduced.trueLanes += laneCount(trueLanes);
      const generation = arrive(machine, warp, barrier, threads, waiting);
      if (generation === null) return;
      const wait = waitFor(machine, warp, barrier, `barrier ${id}`, generation);
      return {
        ...wait,
        resume: () => {
          result.set([reduced.lanes, reduced.trueLanes]);
          wait.resume();
        },
      };
    },
  },
  'bar.warp.sync': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp, { lanes = allLanes }) => meetLanes(machine, warp, lanes),
  },
  'barrier.cluster.arrive': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp) => arriveAtCluster(machine, warp, waiting),
  },
  'barrier.cluster.arrive.relaxed': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp) => arriveAtCluster(machine, warp, relaxed),
  },
  'barrier.cluster.wait': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: true,
    describe: noDetails,
    execute: (machine, warp) => {
      const { clusterBarrier } = machine;
      const { clusterGeneration } = warp;
      if (clusterGeneration === null) {
        report(machine, warp, 'phase', 'waits for the barrier of the cluster without an arrival');
        return;
      }
      warp.clusterGeneration = null;
      const name = 'the barrier of the cluster';
      return waitFor(machine, warp, clusterBarrier, name, clusterGeneration);
    },
  },
  'fence.mbarrier_init': fence('mbarrier_init'),
  'fence.proxy.async': fence('proxy.async'),
  'tcgen05.fence::before_thread_sync': fence('before_thread_sync'),
  'tcgen05.fence::after_thread_sync': fence('after_thread_sync'),
};
