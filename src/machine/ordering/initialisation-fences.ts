import { type AccessClocks, clockHas, type Stamp } from './accesses.js';
import type { Mbarrier } from './barriers.js';
import { clockTime, type Position } from './clock.js';
import type { MemoryModel } from './memory-model.js';
import type { OrderFindings } from './order-findings.js';
import type { OrderedRun, WarpOrder } from './order-tracker.js';

/** The initialisation of an mbarrier, and the fence after it by its own warp, if there has been one. */
interface Initialisation {
  readonly stamp: Stamp;
  readonly thread: number;
  fence: Position | null;
  isReported: boolean;
}

/**
 * Whether mbarriers are initialised for the async proxy before it counts bytes on them. mbarrier.init writes in the generic proxy, the complete_tx of a bulk
 * copy reads and writes in the async one. So a `fence.mbarrier_init` of the thread that has initialised it, or a `fence.proxy.async` of any thread on the way,
 * has to come between them. Threads that arrive or wait use the generic proxy: for them an order is enough, which the history of the barrier checks. The PTX
 * ISA does not say in which proxy tcgen05.commit arrives: a commit without a fence is noted and is no finding. Sources: PTX ISA, "Proxies", `fence`
 * (`.mbarrier_init`), "Asynchronous Operations"; CUTLASS puts `fence_barrier_init` after the initialisations of every pipeline.
 */
export interface InitialisationFences {
  readonly initialise: (order: WarpOrder, barrier: Mbarrier, stamp: Stamp) => void;
  /** The barrier has been invalidated. */
  readonly end: (barrier: Mbarrier) => void;
  /** A `fence.mbarrier_init`, before its warp's clock ticks. */
  readonly fence: (order: WarpOrder) => void;
  /** An operation of the async proxy counts bytes on the barrier; a missing fence is reported. */
  readonly use: (
    machine: OrderedRun,
    barrier: Mbarrier,
    clocks: AccessClocks,
    stamp: Stamp,
  ) => void;
  /** A tcgen05.commit arrives at the barrier, with the clocks of its issue. */
  readonly commit: (barrier: Mbarrier, clocks: AccessClocks) => void;
  /** Whether each commit has come after the initialisation of its barrier and a fence. */
  readonly areCommitsFenced: () => boolean;
}

/** The fences of a run without an initialised mbarrier. */
export function createInitialisationFences(
  { initialisationFences }: MemoryModel,
  findings: OrderFindings,
): InitialisationFences {
  const initialised = new Map<Mbarrier, Initialisation>();
  let unfenced: Initialisation[] = [];
  let hasHint = false;
  let areCommitsFenced = true;

  function isFenced({ stamp, fence }: Initialisation, { clock, asyncView }: AccessClocks): boolean {
    if (clockHas(asyncView, stamp)) return true;
    return fence !== null && clockHas(clock, fence);
  }

  return {
    initialise: ({ thread }, barrier, stamp) => {
      const one = { stamp, thread, fence: null, isReported: false };
      initialised.set(barrier, one);
      unfenced.push(one);
    },
    end: (barrier) => {
      const ended = initialised.get(barrier);
      initialised.delete(barrier);
      unfenced = unfenced.filter((one) => one !== ended);
    },
    fence: ({ thread, chain, clock }) => {
      unfenced = unfenced.filter((one) => {
        const isCovered = one.thread === thread && clockHas(clock, one.stamp);
        if (isCovered) one.fence = { chain, time: clockTime(clock, chain) };
        return !isCovered;
      });
    },
    commit: (barrier, clocks) => {
      areCommitsFenced &&= isFenced(initialised.get(barrier)!, clocks);
    },
    areCommitsFenced: () => areCommitsFenced,
    use: (machine, barrier, clocks, stamp) => {
      const one = initialised.get(barrier)!;
      if (one.isReported || isFenced(one, clocks)) return;
      // Where no order exists either, that has been reported already.
      if (!clockHas(clocks.clock, one.stamp)) return;
      one.isReported = true;
      if (!initialisationFences && hasHint) return;
      hasHint = true;
      const kind = initialisationFences ? 'race' : 'unfenced-initialisation';
      const message = `${barrier.name}: bytes of the async proxy are counted with no fence.mbarrier_init or fence.proxy.async after the initialisation`;
      findings.unordered(machine, kind, barrier.cta, message, [one.stamp, stamp]);
    },
  };
}
