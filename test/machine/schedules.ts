import fc from 'fast-check';

/**
 * Schedules as data: the decisions at which delayingScheduler holds back what would come next. They
 * shrink as arrays do, to fewer delays at earlier decisions, so that what is left of a counterexample are
 * the delays that matter.
 *
 * fast-check's own `fc.scheduler()` cannot serve. It schedules promises, whose tasks go on in microtasks
 * only, while the machine is one synchronous call that asks for a choice at each step; and its arbitrary
 * gives no smaller schedules (SchedulerArbitrary of 4.10: `shrink` returns an empty stream), so that a
 * counterexample would stay as long as it was found.
 */
export function delayLists(decisions: number, mostDelays = 8): fc.Arbitrary<number[]> {
  return fc.array(fc.nat(decisions - 1), { maxLength: mostDelays });
}
