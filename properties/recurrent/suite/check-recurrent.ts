import { RequestError } from '../../../src/request-error.js';
import {
  describeNothingTried,
  LawProgress,
  tryLaws,
  type CheckLimits,
  type LawResult,
  type RoundResult,
  type RoundStart,
  type TriedLaws,
} from '../../suite/index.js';
import { recurrentLaw, type RecurrentKernel, type RecurrentLawId } from '../laws/index.js';
import { describeRecurrence } from '../problems/index.js';
import {
  planRecurrentCheck,
  type RecurrentCheckPlan,
  type RecurrentCheckScope,
} from './plan-check.js';
import type { RecurrentPromises } from './promises.js';
import { tryRecurrentRound, type RecurrentFailure } from './try-round.js';

/** What to try, and for how long. */
export interface RecurrentCheckOptions
  extends RecurrentCheckScope, CheckLimits<RecurrentLawId, RecurrentFailure> {}

/** A violation, and when it was found. */
export interface FoundRecurrentFailure extends RecurrentFailure, RoundStart {}

/** What became of one law. */
export type RecurrentLawResult = LawResult<RecurrentLawId, RecurrentFailure>;

/** The results of all laws. */
export type RecurrentCheckResult = TriedLaws<RecurrentLawId, RecurrentFailure>;

/** Tries rounds of a plan's laws, by their ids, on a kernel. */
export function recurrentRoundsOf(
  kernel: RecurrentKernel,
  { laws, promises }: RecurrentCheckPlan,
  seed: number,
) {
  return (
    id: string,
    round: number,
    shrinkSeconds: number,
  ): Promise<RoundResult<RecurrentFailure>> => {
    const planned = laws.find((law) => law.id === id)!;
    return tryRecurrentRound({ planned, promises, seed }, round, kernel, shrinkSeconds);
  };
}

/**
 * Tries laws of recurrences on random problems that a kernel promises to take. Laws take turns; a failure is simplified, and its law tried no more.
 * @throws RequestError for unknown laws, regimes or promises, and numbers out of range
 */
export async function checkRecurrentKernel(
  kernel: RecurrentKernel,
  given: RecurrentPromises = {},
  options: RecurrentCheckOptions = {},
): Promise<RecurrentCheckResult> {
  const plan = planRecurrentCheck(given, options);
  const { promises } = plan;
  return tryLaws(
    plan.laws.map(
      (law) => new LawProgress<RecurrentLawId, RecurrentFailure>(law, promises.laws[law.id]),
    ),
    (seed) => recurrentRoundsOf(kernel, plan, seed),
    options,
  );
}

/** A violated law in some lines: the violation, the law, and the simplest problem that shows it; empty where it holds. */
export function describeRecurrentFailure({ id, failure }: RecurrentLawResult): string {
  if (failure === null) return '';
  const { statement, reason } = recurrentLaw(id);
  const { lawCase, regime, round, shrinks } = failure;
  return [
    `${id}: ${failure.statement}.`,
    '',
    `Law:    ${statement}.`,
    `Reason: ${reason}`,
    `Found:  problem ${round} of this law, regime ${regime}, simplified ${shrinks} times, form ${lawCase.choice}`,
    '',
    describeRecurrence(lawCase.posed),
  ].join('\n');
}

/**
 * For any test runner: throws an Error that describes every violation unless all laws hold.
 * @throws RequestError as {@link checkRecurrentKernel}, and where nothing was tried
 */
export async function assertRecurrentKernel(
  kernel: RecurrentKernel,
  promises: RecurrentPromises = {},
  options: RecurrentCheckOptions = {},
): Promise<RecurrentCheckResult> {
  const result = await checkRecurrentKernel(kernel, promises, options);
  const failures = result.laws.map(describeRecurrentFailure).filter((text) => text !== '');
  const again = `The option { seed: ${result.seed} } tries the same problems again.`;
  if (failures.length > 0) throw new Error([...failures, again].join('\n\n'));
  if (!result.pass) throw new RequestError(describeNothingTried(result));
  return result;
}
