import { tensorMemoryColumns } from '../memory/index.js';
import { clockHas, type EventClocks, type Stamp } from './accesses.js';
import type { Mbarrier } from './barriers.js';
import { clockContains, clockIncludes, createClock, joinClock, type Clock } from './clock.js';
import { firstMissing } from './finding.js';
import type { MemoryModel, OperationKind } from './memory-model.js';
import type { OrderFindings } from './order-findings.js';
import type { OperationOrder, OrderedCta, OrderedRun } from './order-tracker.js';
import type { DependenceListener } from './schedule-dependences.js';

// Lifetimes of mbarriers, CTAs and allocations of tensor memory, which must not begin or end on the wrong
// side of an event.

/**
 * The lives of mbarriers: from mbarrier.init to mbarrier.inval. All events at one have to come before
 * its end, and the end before the next barrier at the same place begins. Events are stamps of the table
 * of accesses; the clocks are those of the warp that begins or ends a life.
 */
export interface BarrierLives {
  readonly begin: (
    machine: OrderedRun,
    clocks: EventClocks,
    barrier: Mbarrier,
    stamp: Stamp,
  ) => void;
  /** An arrival at a barrier that lives, or a wait for it. */
  readonly remember: (barrier: Mbarrier, stamp: Stamp, order?: OperationOrder | null) => void;
  readonly end: (machine: OrderedRun, clocks: EventClocks, barrier: Mbarrier, stamp: Stamp) => void;
}

/** The last event of a chain at a barrier; for an asynchronous operation also its order. */
interface LastEvent {
  readonly stamp: Stamp;
  readonly order: OperationOrder | null;
}

/** Lives of barriers, before any has begun. */
export function createBarrierLives(model: MemoryModel, findings: OrderFindings): BarrierLives {
  // The last event in each chain, which the earlier ones of the chain come before; and ends by place.
  const lastEvents = new Map<Mbarrier, Map<number, LastEvent>>();
  const ends = new Map<string, Stamp>();
  const placeOf = ({ cta, offset }: Mbarrier): string => `${cta} ${offset}`;

  function check(
    machine: OrderedRun,
    clocks: EventClocks,
    { cta, name }: Mbarrier,
    earlier: Iterable<LastEvent>,
    stamp: Stamp,
  ): void {
    for (const { stamp: event, order } of earlier) {
      if (firstMissing([event], clocks) === null) continue;
      const isStray = mayComeLate(model, order?.tracked, clocks.clock);
      const message = isStray
        ? `${name}: nobody waits for the arrival of a tcgen05.commit before its end`
        : `${name}: its life may begin or end on the wrong side of an event`;
      const kind = isStray ? 'stray-commit' : 'phase';
      findings.unordered(machine, kind, cta, message, [event, stamp]);
    }
  }

  const remember: BarrierLives['remember'] = (barrier, stamp, order = null) => {
    lastEvents.get(barrier)!.set(stamp.chain, { stamp, order });
  };

  return {
    remember,
    begin: (machine, { clock }, barrier, stamp) => {
      const end = ends.get(placeOf(barrier));
      if (end !== undefined)
        check(machine, { clock, asyncView: clock }, barrier, [{ stamp: end, order: null }], stamp);
      lastEvents.set(barrier, new Map());
      remember(barrier, stamp);
    },
    end: (machine, clocks, barrier, stamp) => {
      check(machine, clocks, barrier, lastEvents.get(barrier)!.values(), stamp);
      lastEvents.delete(barrier);
      ends.set(placeOf(barrier), stamp);
    },
  };
}

/**
 * Whether a tcgen05.commit may come late by a memory model: it tracks operations, and all of them are known to be complete.
 *
 * @param tracked as of `OperationOrder`; null or left out if it is no commit
 */
export function mayComeLate(
  { lastCommits }: MemoryModel,
  tracked: Clock | null | undefined,
  known: Clock,
): boolean {
  const isCommit = tracked !== null && tracked !== undefined && tracked.length > 0;
  return !lastCommits && isCommit && clockContains(known, tracked);
}

/** An operation, or an arrival from another CTA, that a CTA must not end before. */
interface Reach {
  readonly cta: OrderedCta;
  /** The event, as clocks have it. */
  readonly chain: number;
  readonly time: number;
  readonly kind: OperationKind | 'arrival';
  /** As of `OperationOrder`, if its own warp is of the CTA. */
  readonly tracked?: Clock | null;
  readonly who: string;
  readonly site: string;
}

/** Operations and arrivals that reach CTAs while they run. */
export interface CtaReach {
  readonly add: (reach: Reach) => void;
  /**
   * Once all warps have ended: reports operations that none of a CTA's warps knows to be complete,
   * since the CTA may end before them in another schedule.
   */
  readonly checkEnds: (machine: OrderedRun) => void;
}

/** The reach of operations, before any has been issued. */
export function createCtaReach(model: MemoryModel): CtaReach {
  // The last in each chain is enough: the earlier ones of the chain come before it.
  const reached = new Map<string, Reach>();
  return {
    add: (reach) => reached.set(`${reach.cta.rank} ${reach.chain}`, reach),
    checkEnds: ({ ctas, findings, step }) => {
      for (const cta of ctas) {
        const end = createClock();
        for (const { order } of cta.warps) {
          joinClock(end, order!.clock);
          joinClock(end, order!.happened);
          joinClock(end, order!.unfenced);
        }
        for (const reach of reached.values()) {
          const { chain, time, kind, tracked, who, site } = reach;
          if (reach.cta !== cta || clockIncludes(end, chain, time)) continue;
          const isStray = mayComeLate(model, tracked, end);
          const ofKind = kind === 'arrival' ? 'exited-cta' : 'unfinished-operation';
          findings.add({
            kind: isStray ? 'stray-commit' : ofKind,
            message: `CTA ${cta.rank} may end before ${who} (${site}) is done with it`,
            cta: cta.rank,
            step,
            accesses: [{ who, site, step }],
          });
        }
      }
    },
  };
}

/** Events that change the columns of tensor memory that later allocations get, or whether they get any. */
type AllocatorEvent = 'alloc' | 'dealloc' | 'relinquish';

/** One event: its columns (none of a relinquished permit), its clock and its stamp in the table of accesses. */
interface AllocatorEventAt {
  readonly kind: AllocatorEvent;
  readonly firstColumn: number;
  readonly columns: number;
  readonly clock: Clock;
  readonly stamp: Stamp;
}

/** Allocations that the columns of one CTA's tensor memory belong to. */
export interface TensorAllocations {
  /**
   * Notes an event of the allocator, before it changes anything. Where another schedule may swap an allocation with it,
   * the columns, or their availability, depend on the schedule: this is reported. Deallocations among themselves may come
   * in any order; and one that an allocation cannot do without comes before it in every schedule.
   */
  readonly happen: (machine: OrderedRun, cta: number, event: AllocatorEventAt) => void;
  /**
   * Reports an access to a column that the allocation is not known to come before: in another schedule
   * the column may not be allocated yet. Also reports an access to a column that has been freed.
   * @param clock of the access, its stamp last
   */
  readonly check: (
    machine: OrderedRun,
    cta: number,
    clock: Clock,
    column: number,
    stamp: Stamp,
  ) => void;
}

/** Whether this many adjacent columns are free, were these still allocated. */
function hasRoom(
  columns: number,
  isAllocated: (column: number) => boolean,
  taken: readonly AllocatorEventAt[],
): boolean {
  let free = 0;
  for (let column = 0; column < tensorMemoryColumns && free < columns; column++) {
    const isTaken =
      isAllocated(column) ||
      taken.some(({ firstColumn, columns: count }) => {
        const at = column - firstColumn;
        return at >= 0 && at < count;
      });
    free = isTaken ? 0 : free + 1;
  }
  return free >= columns;
}

/** The allocations of a run before the first one. */
export function createTensorAllocations(
  findings: OrderFindings,
  onDependence: DependenceListener = () => undefined,
): TensorAllocations {
  // By column; null before its first allocation.
  const stamps = new Array<Stamp | null>(tensorMemoryColumns).fill(null);
  // By column; null while it is allocated.
  const freed = new Array<Stamp | null>(tensorMemoryColumns).fill(null);
  // The last event of each kind in each chain: the earlier ones of a chain come before it.
  const events: Record<AllocatorEvent, Map<number, AllocatorEventAt>> = {
    alloc: new Map(),
    dealloc: new Map(),
    relinquish: new Map(),
  };

  const isAllocated = (column: number): boolean =>
    stamps[column] !== null && freed[column] === null;

  /** The earlier events of a kind that are not known to come before this one. */
  function unorderedBefore(kind: AllocatorEvent, { clock }: AllocatorEventAt): AllocatorEventAt[] {
    return [...events[kind].values()].filter(({ stamp }) => !clockHas(clock, stamp));
  }

  return {
    happen: (machine, cta, event) => {
      const { kind, firstColumn, columns, stamp } = event;
      const swapped = unorderedBefore('alloc', event);
      if (kind === 'alloc') {
        const frees = unorderedBefore('dealloc', event);
        const isForced = frees.length === 1 && !hasRoom(columns, isAllocated, frees);
        swapped.push(...unorderedBefore('relinquish', event), ...(isForced ? [] : frees));
      }
      const message =
        'tensor memory: which columns are allocated, and whether any are free, depends on the order of';
      for (const { stamp: earlier } of swapped) {
        findings.unordered(machine, 'schedule-dependent', cta, message, [earlier, stamp]);
        onDependence(earlier);
      }
      events[kind].set(stamp.chain, event);
      if (kind === 'alloc') {
        stamps.fill(stamp, firstColumn, firstColumn + columns);
        freed.fill(null, firstColumn, firstColumn + columns);
      } else freed.fill(stamp, firstColumn, firstColumn + columns);
    },
    check: (machine, cta, clock, column, stamp) => {
      const free = freed[column];
      if (free !== null) {
        const message = `tensor memory, column ${column}: used after it has been freed`;
        findings.unordered(machine, 'race', cta, message, [free, stamp]);
        return;
      }
      const allocation = stamps[column];
      if (allocation === null || clockHas(clock, allocation)) return;
      const message = `tensor memory, column ${column}: used in no order with its allocation`;
      findings.unordered(machine, 'race', cta, message, [allocation, stamp]);
    },
  };
}
