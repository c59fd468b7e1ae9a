import type { AccessTable } from './accesses.js';
import { clockIncludes, type Clock } from './clock.js';

/** How the phases of a barrier can be other ones in another schedule. */
export const barrierViolationKinds = {
  arrival:
    'an arrival that may come before the barrier is initialised or be counted to an earlier phase',
  expectation: 'bytes expected so late that the phase may complete without them',
  'early-wait': 'a wait that may return for an earlier phase of the same parity',
  'late-wait': 'a wait that may come when the phase after its own is complete, and miss its own',
} as const;

/** One way. */
export type BarrierViolationKind = keyof typeof barrierViolationKinds;

/** Two events at a barrier that lack an order. */
export interface BarrierViolation {
  readonly kind: BarrierViolationKind;
  /** The phase, from 0, that the arrival or the bytes were counted to or the wait waited for; -1 before. */
  readonly phase: number;
  /** The stamp of the arrival, of the expectation or of the wait. */
  readonly event: number;
  /**
   * The stamp of the event that it lacks an order with: for an arrival and an early wait, which it has to
   * come after; for an expectation (an arrival) and a late wait (what completed the next phase), an
   * event of the phase that it has to come before.
   */
  readonly unordered: number;
}

/** The first of the events that is not in a clock; null if all of them are. */
export function firstMissing(
  accesses: AccessTable,
  events: readonly number[],
  clock: Clock,
): number | null {
  for (const event of events)
    if (!clockIncludes(clock, accesses.chainOf(event), accesses.timeOf(event))) return event;
  return null;
}
