import { siteOf } from '../isa/index.js';
import { type EventClocks, Stamp } from './accesses.js';
import {
  createBarrierHistory,
  createNamedBarrierHistory,
  joinEventClocks,
  type BarrierHistory,
  type NamedBarrierHistory,
} from './barrier-history.js';
import type { Mbarrier, NamedBarrier } from './barriers.js';
import { copyClock, createClock, includeInClock, joinClock, type Chains } from './clock.js';
import { createInitialisationFences } from './initialisation-fences.js';
import { createBarrierLives, type CtaReach } from './lifetimes.js';
import type { MemoryModel } from './memory-model.js';
import { clocksOfActor, tick, type RecordAccess } from './operation-order.js';
import type { OrderFindings } from './order-findings.js';
import type {
  MemoryArea,
  OrderTracker,
  OrderedRun,
  OrderedWarp,
  WarpOrder,
} from './order-tracker.js';
import type { ShadowMemory } from './shadow-memory.js';

/** The last phase for which a wait of some warp at some place returned, and the stamp of that wait. */
interface SeenPhase {
  readonly phase: number;
  readonly stamp: Stamp;
}

/** A wait that has returned for a phase for which it had returned before. */
interface Repetition {
  readonly barrier: Mbarrier;
  readonly phase: number;
  readonly stamps: readonly [Stamp, Stamp];
}

/**
 * Waits of one warp at one place that return twice for one phase of a barrier. A loop whose parity is not flipped, or
 * flipped too late, does this; the report is then about a race, or a phase of another barrier, that results from it.
 */
interface RepeatedWaits {
  readonly observe: (warp: OrderedWarp, barrier: Mbarrier, phase: number, stamp: Stamp) => void;
  /** The barrier has been invalidated. */
  readonly end: (barrier: Mbarrier) => void;
  /** Reports them: the first at each place. */
  readonly tell: (machine: OrderedRun) => void;
}

/** The repeated waits of a run, none at first. */
function createRepeatedWaits(findings: OrderFindings): RepeatedWaits {
  const seen = new Map<Mbarrier, Map<string, SeenPhase>>();
  const repetitions = new Map<string, Repetition>();
  return {
    observe: (warp, barrier, phase, stamp) => {
      const place = `${warp.order!.chain} ${siteOf(warp.current)}`;
      let places = seen.get(barrier);
      if (places === undefined) seen.set(barrier, (places = new Map()));
      const before = places.get(place);
      places.set(place, { phase, stamp });
      if (before?.phase === phase && !repetitions.has(place))
        repetitions.set(place, { barrier, phase, stamps: [before.stamp, stamp] });
    },
    end: (barrier) => {
      seen.delete(barrier);
    },
    tell: (machine) => {
      for (const { barrier, phase, stamps } of repetitions.values()) {
        const which = phase < 0 ? 'the one before the first' : `${phase}`;
        const message = `${barrier.name}: waits for a phase it has already seen (${which})`;
        findings.unordered(machine, 'repeated-wait', barrier.cta, message, stamps);
      }
    },
  };
}

const wordBytes = 4;
const mbarrierBytes = 8;

/** State that all parts of a cluster's tracker share. */
export interface TrackedCluster {
  readonly model: MemoryModel;
  readonly chains: Chains;
  readonly record: RecordAccess;
  readonly findings: OrderFindings;
  readonly reach: CtaReach;
  /** Shadow of the shared memory of each CTA. */
  readonly sharedMemories: readonly ShadowMemory[];
}

/** The part of a tracker that follows barriers of all kinds. */
type BarrierTracker = Pick<
  OrderTracker,
  | 'initialise'
  | 'invalidate'
  | 'arrive'
  | 'complete'
  | 'observe'
  | 'arriveAtNamed'
  | 'completeNamed'
  | 'leaveNamed'
  | 'tellRepeatedWaits'
  | 'areCommitsFenced'
> & {
  /** A `fence.mbarrier_init`, before its warp's clock ticks. */
  readonly fenceInitialisations: (order: WarpOrder) => void;
};

/** The name of a barrier of threads in a finding. */
function nameOf(barrier: NamedBarrier, { clusterBarrier }: OrderedRun): string {
  if (barrier.id >= 0) return `barrier ${barrier.id}`;
  return barrier === clusterBarrier ? 'the barrier of the cluster' : 'tcgen05.alloc of a pair';
}

/** Follows the barriers of a cluster before it runs. */
export function createBarrierTracker({
  model,
  chains,
  record,
  findings,
  reach,
  sharedMemories,
}: TrackedCluster): BarrierTracker {
  const lives = createBarrierLives(model, findings);
  const repeatedWaits = createRepeatedWaits(findings);
  const initialisations = createInitialisationFences(model, findings);
  const histories = new Map<Mbarrier, BarrierHistory>();
  const namedHistories = new Map<NamedBarrier, NamedBarrierHistory>();

  function historyOf(barrier: NamedBarrier): NamedBarrierHistory {
    let history = namedHistories.get(barrier);
    if (history === undefined) {
      history = createNamedBarrierHistory();
      namedHistories.set(barrier, history);
    }
    return history;
  }

  /** The words of a barrier become an mbarrier, or stop being one. */
  function changeWords(
    machine: OrderedRun,
    warp: OrderedWarp,
    { cta: rank, offset }: Mbarrier,
    change: 'occupy' | 'vacate',
    stamp: Stamp,
  ): void {
    const shared = sharedMemories[rank];
    const start = offset / wordBytes;
    const count = mbarrierBytes / wordBytes;
    // Elsewhere there can be none, which has been reported.
    if (!Number.isInteger(start) || start < 0 || start + count > shared.words) return;
    const area: MemoryArea = { space: 'shared', cta: machine.ctas[rank], start, count };
    for (const conflict of shared[change](area, stamp, warp.order!))
      findings.conflict(machine, area, conflict);
  }

  return {
    fenceInitialisations: initialisations.fence,
    areCommitsFenced: initialisations.areCommitsFenced,
    initialise: (machine, warp, barrier) => {
      const stamp = record(machine, { warp, order: null }, { kind: 'write', proxy: 'generic' });
      histories.set(barrier, createBarrierHistory(stamp));
      lives.begin(machine, warp.order!, barrier, stamp);
      initialisations.initialise(warp.order!, barrier, stamp);
      changeWords(machine, warp, barrier, 'occupy', stamp);
      tick(warp.order!);
    },
    invalidate: (machine, warp, barrier) => {
      const stamp = record(machine, { warp, order: null }, { kind: 'write', proxy: 'generic' });
      lives.end(machine, warp.order!, barrier, stamp);
      changeWords(machine, warp, barrier, 'vacate', stamp);
      histories.delete(barrier);
      initialisations.end(barrier);
      repeatedWaits.end(barrier);
      tick(warp.order!);
    },
    arrive: (machine, actor, barrier, what) => {
      const history = histories.get(barrier)!;
      const stamp = record(machine, actor, { kind: 'arrive', proxy: 'generic' });
      lives.remember(barrier, stamp, actor.order);
      const { warp, order } = actor;
      const clocks = clocksOfActor(actor);
      const violations =
        what === 'arrival'
          ? history.arrive(stamp, clocks, order?.issued)
          : history[what === 'bytes' ? 'transact' : 'expect'](stamp, clocks);
      findings.violations(machine, barrier.cta, barrier.name, violations);
      if (what === 'bytes' && order?.proxy === 'async')
        initialisations.use(machine, barrier, clocks, stamp);
      if (order !== null && order.tracked !== null)
        initialisations.commit(barrier, { clock: order.issued, asyncView: order.asyncView });
      if (order !== null) return;
      const { chain, clock } = warp.order!;
      const cta = machine.ctas[barrier.cta];
      if (cta !== warp.cta) {
        const [time, site] = [clock.times[chain], siteOf(warp.current)];
        reach.add({ cta, chain, time, kind: 'arrival', who: warp.name, site });
      }
      tick(warp.order!);
    },
    complete: (machine, barrier) => {
      const violations = histories.get(barrier)!.complete();
      findings.violations(machine, barrier.cta, barrier.name, violations);
    },
    observe: (machine, warp, barrier) => {
      const history = histories.get(barrier)!;
      const stamp = record(machine, { warp, order: null }, { kind: 'wait', proxy: 'generic' });
      lives.remember(barrier, stamp);
      const violations = history.observe(stamp, warp.order!);
      findings.violations(machine, barrier.cta, barrier.name, violations);
      repeatedWaits.observe(warp, barrier, history.phase - 1, stamp);
      joinEventClocks(warp.order!, history.completed);
      tick(warp.order!);
    },
    arriveAtNamed: (machine, warp, barrier, { waits, isRelaxed }) => {
      const order = warp.order!;
      let stamp: Stamp;
      let clocks: EventClocks = order;
      if (isRelaxed) {
        // Only the events before fence.mbarrier_init are made known.
        const happened = copyClock(order.happened);
        joinClock(happened, order.clock);
        clocks = { clock: copyClock(order.published), asyncView: createClock(), happened };
        const position = chains.begin(clocks.clock);
        includeInClock(clocks.clock, position.chain, position.time);
        stamp = new Stamp({
          ...position,
          proxy: 'generic',
          kind: 'arrive',
          step: machine.step,
          site: siteOf(warp.current),
          who: warp.name,
        });
      } else stamp = record(machine, { warp, order: null }, { kind: 'arrive', proxy: 'generic' });
      const violations = historyOf(barrier).arrive(stamp, waits, clocks);
      findings.violations(machine, warp.cta.rank, nameOf(barrier, machine), violations);
      tick(order);
    },
    completeNamed: (barrier) => historyOf(barrier).complete(),
    leaveNamed: ({ order }, barrier, generation) =>
      joinEventClocks(order!, historyOf(barrier).leave(generation)),
    tellRepeatedWaits: repeatedWaits.tell,
  };
}
