import { tensorMemoryColumns } from '../memory/index.js';
import type { AccessTable } from './accesses.js';
import type { Mbarrier } from './barriers.js';
import { clockIncludes, createClock, joinClock, type Clock } from './clock.js';
import type { OperationKind } from './memory-model.js';
import type { OrderFindings } from './order-findings.js';
import type { OrderedCta, OrderedRun } from './order-tracker.js';

// What must not begin or end on the wrong side of an event: mbarriers, CTAs, allocations of tensor memory.

/**
 * The lives of mbarriers: from mbarrier.init to mbarrier.inval. Whatever happens to one has to come
 * before its end, and the end before the next barrier at the same place begins. Events are stamps of the
 * table of accesses; the clock is that of the warp that begins or ends a life.
 */
interface BarrierLives {
  readonly begin: (machine: OrderedRun, clock: Clock, barrier: Mbarrier, stamp: number) => void;
  /** An arrival at a barrier that lives, or a wait for it. */
  readonly remember: (barrier: Mbarrier, stamp: number) => void;
  readonly end: (machine: OrderedRun, clock: Clock, barrier: Mbarrier, stamp: number) => void;
}

/** No barrier has begun yet. */
export function createBarrierLives(accesses: AccessTable, findings: OrderFindings): BarrierLives {
  // The last event in each chain, which the earlier ones of the chain come before; and ends by place.
  const lastEvents = new Map<Mbarrier, Map<number, number>>();
  const ends = new Map<string, number>();
  const placeOf = ({ cta, offset }: Mbarrier): string => `${cta} ${offset}`;

  function check(
    machine: OrderedRun,
    clock: Clock,
    { cta, name }: Mbarrier,
    earlier: Iterable<number>,
    stamp: number,
  ): void {
    const message = `${name}: its life may begin or end on the wrong side of an event`;
    for (const event of earlier)
      if (!clockIncludes(clock, accesses.chainOf(event), accesses.timeOf(event)))
        findings.unordered(machine, 'phase', cta, message, [event, stamp]);
  }

  const remember: BarrierLives['remember'] = (barrier, stamp) => {
    lastEvents.get(barrier)!.set(accesses.chainOf(stamp), stamp);
  };

  return {
    remember,
    begin: (machine, clock, barrier, stamp) => {
      const end = ends.get(placeOf(barrier));
      if (end !== undefined) check(machine, clock, barrier, [end], stamp);
      lastEvents.set(barrier, new Map());
      remember(barrier, stamp);
    },
    end: (machine, clock, barrier, stamp) => {
      check(machine, clock, barrier, lastEvents.get(barrier)!.values(), stamp);
      lastEvents.delete(barrier);
      ends.set(placeOf(barrier), stamp);
    },
  };
}

/** An operation, or an arrival from another CTA, that a CTA must not end before. */
interface Reach {
  readonly cta: OrderedCta;
  /** The event, as clocks have it. */
  readonly chain: number;
  readonly time: number;
  readonly kind: OperationKind | 'arrival';
  readonly who: string;
  readonly site: string;
}

/** What reaches CTAs while they run. */
interface CtaReach {
  readonly add: (reach: Reach) => void;
  /**
   * Once all warps have ended: reports what none of a CTA's warps knows to be complete, since the CTA
   * may end before it in another schedule.
   */
  readonly checkEnds: (machine: OrderedRun) => void;
}

/** Nothing has reached any CTA yet. */
export function createCtaReach(): CtaReach {
  // The last in each chain is enough: the earlier ones of the chain come before it.
  const reached = new Map<string, Reach>();
  return {
    add: (reach) => reached.set(`${reach.cta.rank} ${reach.chain}`, reach),
    checkEnds: ({ ctas, findings, step }) => {
      for (const cta of ctas) {
        const end = createClock();
        for (const { order } of cta.warps) {
          joinClock(end, order!.clock);
          joinClock(end, order!.unfenced);
        }
        for (const reach of reached.values()) {
          const { chain, time, kind, who, site } = reach;
          if (reach.cta !== cta || clockIncludes(end, chain, time)) continue;
          findings.add({
            kind: kind === 'arrival' ? 'exited-cta' : 'unfinished-operation',
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

/** Which allocation the columns of one CTA's tensor memory belong to. */
interface TensorAllocations {
  /** @param stamp of the tcgen05.alloc, in the table of accesses */
  readonly allocate: (firstColumn: number, columns: number, stamp: number) => void;
  /**
   * Reports an access to a column that the allocation is not known to come before: in another schedule
   * the column may not be allocated yet.
   * @param clock of the access, its stamp last
   */
  readonly check: (
    machine: OrderedRun,
    cta: number,
    clock: Clock,
    column: number,
    stamp: number,
  ) => void;
}

/** No column has been allocated yet. */
export function createTensorAllocations(
  accesses: AccessTable,
  findings: OrderFindings,
): TensorAllocations {
  // By column; 0 before its first allocation.
  const stamps = new Int32Array(tensorMemoryColumns);
  return {
    allocate: (firstColumn, columns, stamp) =>
      void stamps.fill(stamp, firstColumn, firstColumn + columns),
    check: (machine, cta, clock, column, stamp) => {
      const allocation = stamps[column];
      if (allocation === 0) return;
      if (clockIncludes(clock, accesses.chainOf(allocation), accesses.timeOf(allocation))) return;
      const message = `tensor memory, column ${column}: used in no order with its allocation`;
      findings.unordered(machine, 'race', cta, message, [allocation, stamp]);
    },
  };
}
