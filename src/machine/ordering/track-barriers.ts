import { siteOf } from '../isa/index.js';
import type { Stamp } from './accesses.js';
import { createBarrierHistory, joinEventClocks, type BarrierHistory } from './barrier-history.js';
import type { Mbarrier } from './barriers.js';
import { createInitialisationFences, type InitialisationFences } from './initialisation-fences.js';
import { createBarrierLives, type BarrierLives, type CtaReach } from './lifetimes.js';
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
  readonly record: RecordAccess;
  readonly findings: OrderFindings;
  readonly reach: CtaReach;
  /** Shadow of the shared memory of each CTA. */
  readonly sharedMemories: readonly ShadowMemory[];
}

/** The part of a tracker that follows mbarriers. */
type BarrierTracker = Pick<
  OrderTracker,
  | 'initialise'
  | 'invalidate'
  | 'arrive'
  | 'complete'
  | 'observe'
  | 'tellRepeatedWaits'
  | 'areCommitsFenced'
> & {
  /** A `fence.mbarrier_init`, before its warp's clock ticks. */
  readonly fenceInitialisations: (order: WarpOrder) => void;
};

/** State kept for the mbarriers of a cluster. */
interface MbarrierState {
  readonly histories: Map<Mbarrier, BarrierHistory>;
  readonly lives: BarrierLives;
  readonly initialisations: InitialisationFences;
  readonly repeatedWaits: RepeatedWaits;
}

/** The part that follows how mbarriers begin and end. */
function createLifeTracker(
  { record, findings, sharedMemories }: TrackedCluster,
  { histories, lives, initialisations, repeatedWaits }: MbarrierState,
): Pick<OrderTracker, 'initialise' | 'invalidate'> {
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
  };
}

/** The part that follows the phases of mbarriers: arrivals and waits. */
function createPhaseTracker(
  { record, findings, reach }: TrackedCluster,
  { histories, lives, initialisations, repeatedWaits }: MbarrierState,
): Pick<OrderTracker, 'arrive' | 'complete' | 'observe'> {
  return {
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
  };
}

/** Follows the mbarriers of a cluster before it runs. */
export function createBarrierTracker(cluster: TrackedCluster): BarrierTracker {
  const { model, findings } = cluster;
  const state: MbarrierState = {
    histories: new Map(),
    lives: createBarrierLives(model, findings),
    initialisations: createInitialisationFences(model, findings),
    repeatedWaits: createRepeatedWaits(findings),
  };
  return {
    fenceInitialisations: state.initialisations.fence,
    areCommitsFenced: state.initialisations.areCommitsFenced,
    ...createLifeTracker(cluster, state),
    ...createPhaseTracker(cluster, state),
    tellRepeatedWaits: state.repeatedWaits.tell,
  };
}
