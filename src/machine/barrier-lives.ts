import type { Mbarrier } from './mbarrier.js';
import type { OrderFindings } from './order-findings.js';
import { clockIncludes, type AccessTable, type Clock } from './ordering/index.js';
import type { MachineState } from './state.js';

/**
 * The lives of mbarriers: from mbarrier.init to mbarrier.inval. Whatever happens to one has to come
 * before its end, and the end before the next barrier at the same place begins. Events are stamps of the
 * table of accesses; the clock is that of the warp that begins or ends a life.
 */
export interface BarrierLives {
  readonly begin: (machine: MachineState, clock: Clock, barrier: Mbarrier, stamp: number) => void;
  /** An arrival at a barrier that lives, or a wait for it. */
  readonly remember: (barrier: Mbarrier, stamp: number) => void;
  readonly end: (machine: MachineState, clock: Clock, barrier: Mbarrier, stamp: number) => void;
}

/** No barrier has begun yet. */
export function createBarrierLives(accesses: AccessTable, findings: OrderFindings): BarrierLives {
  // The last event in each chain, which the earlier ones of the chain come before; and ends by place.
  const lastEvents = new Map<Mbarrier, Map<number, number>>();
  const ends = new Map<string, number>();
  const placeOf = ({ cta, offset }: Mbarrier): string => `${cta} ${offset}`;

  function check(
    machine: MachineState,
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
