import { RequestError } from '../../src/request-error.js';
import type { AttentionKernel } from '../laws/index.js';
import { describeFailures, describeNothingTried, groupFailures } from './describe-check.js';
import { LawProgress, type LawResult, runNumber, widenedNotes } from './law-progress.js';
import { featureNotes, planCheck, type CheckScope } from './plan-check.js';
import type { KernelPromises } from './promises.js';
import { takeTurns, type RoundRunner } from './take-turns.js';
import { tryRound } from './try-round.js';

/** The laws, problems and time of a check. */
export interface CheckOptions extends CheckScope {
  /** Problems that each law is tried on; default 100. */
  readonly runs?: number | undefined;
  /** Seed of the problems, the same for the same seed; default drawn at random. */
  readonly seed?: number | undefined;
  /** Whether to stop at the first failure; default false. */
  readonly bail?: boolean | undefined;
  /** Seconds after which no further problem is tried; default none. */
  readonly seconds?: number | undefined;
  /** The most seconds to simplify a failing problem; default 10. */
  readonly shrinkSeconds?: number | undefined;
  /**
   * Tries the laws on the kernel in place of this thread; the findings are the same. Beside `bail` it is not
   * used: this thread stops at the first violation.
   */
  readonly apart?: RoundRunner | undefined;
  /** Called after every run with the number of runs so far and of all runs. */
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** The results of all laws. */
export interface CheckResult {
  /** Whether some law was tried, and none is violated. */
  readonly pass: boolean;
  readonly seed: number;
  readonly laws: readonly LawResult[];
  /** Turns of all laws. */
  readonly runs: number;
  readonly seconds: number;
  /** Whether the time was up before every law had its runs. */
  readonly outOfTime: boolean;
  /** Other notes on the kernel, a sentence each without its full stop. */
  readonly notes: readonly string[];
}

/** Whether some law was tried, and none is violated. */
export function isPass(laws: readonly Pick<LawResult, 'status'>[]): boolean {
  return (
    laws.some(({ status }) => status === 'holds') &&
    laws.every(({ status }) => status !== 'violated')
  );
}

/**
 * Tries every law on random problems that the kernel promises to take. Laws take turns, so that a bug
 * that breaks many of them shows early; a failure is simplified and its law tried no more.
 * @throws RequestError for unknown laws or regimes, runs that are no positive whole number, a seed that
 * is no whole number, and promises that leave no problem
 */
export async function checkKernel(
  kernel: AttentionKernel,
  promises: KernelPromises = {},
  options: CheckOptions = {},
): Promise<CheckResult> {
  const { runs = 100, seconds = Infinity, shrinkSeconds = 10, bail = false, progress } = options;
  const { seed = Math.floor(Math.random() * 2 ** 31) } = options;
  if (!(Number.isSafeInteger(runs) && runs > 0))
    throw new RequestError(`runs is ${runs}; give a positive whole number`);
  if (!Number.isSafeInteger(seed)) throw new RequestError(`seed is ${seed}; give a whole number`);
  const plan = planCheck(promises, options);
  const all = plan.laws.map((law) => new LawProgress(law, plan.promises, seed));
  const start = performance.now();
  const total = runs * all.filter(({ isOpen }) => isOpen).length;
  const here: RoundRunner = {
    lanes: 1,
    tryRound: (id, round, shrinkSeconds) => {
      const planned = plan.laws.find((law) => law.id === id)!;
      return tryRound({ planned, promises: plan.promises, seed }, round, kernel, shrinkSeconds);
    },
  };
  const { done, outOfTime } = await takeTurns(
    all,
    bail ? here : (options.apart ?? here),
    { runs, bail, seconds, shrinkSeconds },
    (done) => progress?.(done, total),
  );
  const results = all.map((law, position): LawResult => {
    const result = law.result();
    const { failure } = result;
    if (failure === null) return result;
    // Rounds that are tried at the same time are counted as if they took turns.
    const runsUntil = runNumber(all, position, failure.round);
    return { ...result, failure: { ...failure, runsUntil } };
  });
  return {
    pass: isPass(results),
    seed,
    laws: results,
    runs: done,
    seconds: (performance.now() - start) / 1000,
    outOfTime,
    notes: [
      ...widenedNotes(results.flatMap(({ widened }) => widened)),
      ...featureNotes(results, plan.promises),
    ],
  };
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** The number of causes of violations in words, where several have one. */
function inFindings(result: CheckResult, violated: number): string {
  const groups = groupFailures(result).length;
  return groups === violated ? '' : `, apparently by ${plural(groups, 'cause')}`;
}

/**
 * For any test runner: tries every law on random problems (see `checkKernel`), and throws an Error that
 * describes every violation, with the simplest problem that shows it, unless all laws hold.
 * @returns the result of each law, when all hold
 * @throws RequestError as `checkKernel`, and when no law was tried on any problem, so
 * that nothing was checked
 */
export async function assertAttentionKernel(
  kernel: AttentionKernel,
  promises: KernelPromises = {},
  options: CheckOptions = {},
): Promise<CheckResult> {
  const result = await checkKernel(kernel, promises, options);
  const { seed, runs, seconds } = result;
  const tried = result.laws.filter(({ status }) => status === 'holds' || status === 'violated');
  const violated = tried.filter(({ failure }) => failure !== null);
  if (violated.length > 0)
    throw new Error(
      [
        `the kernel violates ${violated.length} of ${plural(tried.length, 'law')}${inFindings(result, violated.length)} (seed ${seed}, ${plural(runs, 'run')} in ${seconds.toFixed(1)} s)`,
        describeFailures(result),
        `The option { seed: ${seed} } tries the same problems again.`,
      ].join('\n\n'),
    );
  if (!result.pass) throw new RequestError(describeNothingTried(result));
  return result;
}
