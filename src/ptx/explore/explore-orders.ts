import type { StepLog } from './step-log.js';

/** A schedule of an exploration: at each of these places of the run before it, a step was held back until another was taken. */
export type Holds = readonly (readonly [held: number, until: number])[];

/**
 * Runs a program from its beginning with a plan of the takers of the first steps. The same plan gives the same run. `isLast` tells,
 * when a schedule is run again, that this run is the schedule's own and not one that it is made from.
 */
export type RunPlanned<Result> = (
  planned: Int32Array,
  isLast?: boolean,
) => {
  readonly log: StepLog;
  readonly result: Result;
  /** A digest of all results of a run: runs with different results have different digests. */
  readonly digest: string;
};

/** The result of an exploration. */
export interface ExploredOrders {
  readonly runs: number;
  /** Whether every order of every two steps that depend on one another has been run. */
  readonly isExhausted: boolean;
  /** Maximum number of such pairs in a run. */
  readonly mostPairs: number;
}

/** Maximum number of steps in all schedules that wait for their turn: 4 bytes each. */
const mostWaitingSteps = 5e7;

const noHolds: Holds = [];

/**
 * Names of the places of a run that other runs share: the taker of the step, and the step's index among the taker's.
 */
function eventNames({ steps }: StepLog): (place: number) => string {
  const taken = new Map<number, number>();
  const ordinals = steps.map((who) => {
    const ordinal = taken.get(who) ?? 0;
    taken.set(who, ordinal + 1);
    return ordinal;
  });
  return (place) => `${steps[place]}.${ordinals[place]}`;
}

/** The plan in which a step is held back until another is taken: all earlier steps, then the others in their order. */
function planWithHold({ steps }: StepLog, held: number, until: number): Int32Array {
  const between = steps.subarray(held, until + 1).filter((who) => who !== steps[held]);
  const plan = new Int32Array(held + between.length);
  plan.set(steps.subarray(0, held));
  plan.set(between, held);
  return plan;
}

/** Each step that others depend on, with the first of these; polls that showed nothing new are left out. */
function reversible({ dependent, isPoll }: StepLog): ReadonlyMap<number, number> {
  const first = new Map<number, number>();
  for (const [earlier, later] of dependent) {
    if (isPoll(earlier)) continue;
    const known = first.get(earlier);
    if (known === undefined || later < known) first.set(earlier, later);
  }
  return first;
}

/**
 * Runs a program in every order of the steps that depend on one another, or in the requested number of orders. It begins with the usual
 * schedule; in each run with a new order, every such pair is reversed: the earlier step is held back until the later one has been taken, all
 * others keep their order. Steps that depend on nothing unordered have the same order in all these runs, or their order does not matter
 * (docs/reference/machine.md), so the runs stand for all schedules once none is left: this is dynamic partial-order reduction (Flanagan, Godefroid,
 * POPL 2005), over classes of equivalent runs.
 *
 * @param mostRuns runs after which it stops
 * @param visit called with each run
 */
export function exploreOrders<Result>(
  run: RunPlanned<Result>,
  mostRuns: number,
  visit: (result: Result, schedule: Holds) => void,
): ExploredOrders {
  const waiting: { readonly plan: Int32Array; readonly holds: Holds; readonly undoes: string }[] = [
    { plan: new Int32Array(0), holds: noHolds, undoes: '' },
  ];
  const seen = new Set<string>();
  let [runs, mostPairs, waitingSteps, isCut] = [0, 0, 0, false];
  for (let one; runs < mostRuns && (one = waiting.shift()) !== undefined;) {
    waitingSteps -= one.plan.length;
    const { log, result, digest } = run(one.plan);
    runs++;
    visit(result, one.holds);
    const nameOf = eventNames(log);
    const pairs = log.dependent
      .filter(([earlier]) => !log.isPoll(earlier))
      .map((pair) => pair.map(nameOf).join('<'));
    mostPairs = Math.max(mostPairs, pairs.length);
    const order = `${digest} ${pairs.sort().join(' ')}`;
    if (seen.has(order)) continue;
    seen.add(order);
    for (const [held, until] of reversible(log)) {
      if (`${nameOf(held)}<${nameOf(until)}` === one.undoes) continue;
      const plan = planWithHold(log, held, until);
      isCut ||= waitingSteps + plan.length > mostWaitingSteps;
      if (isCut) break;
      waitingSteps += plan.length;
      const undoes = `${nameOf(until)}<${nameOf(held)}`;
      waiting.push({ plan, holds: [...one.holds, [held, until]], undoes });
    }
  }
  return { runs, isExhausted: !isCut && waiting.length === 0, mostPairs };
}

/** Runs one schedule of an exploration again. @throws RangeError for one that holds back a step that does not exist */
export function runHolds<Result>(run: RunPlanned<Result>, holds: Holds): Result {
  let { log, result } = run(new Int32Array(0), holds.length === 0);
  holds.forEach(([held, until], i) => {
    if (!(held >= 0 && held < until && until < log.steps.length))
      throw new RangeError(`${held}-${until}: the run before it has ${log.steps.length} steps`);
    ({ log, result } = run(planWithHold(log, held, until), i === holds.length - 1));
  });
  return result;
}
