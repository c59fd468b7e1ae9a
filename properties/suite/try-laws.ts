import { RequestError } from '../../src/request-error.js';
import type { LawId } from '../laws/index.js';
import { runNumber, type LawProgress, type LawResult } from './law-progress.js';
import { takeTurns, type RoundRunner } from './take-turns.js';
import type { RoundFailure } from './try-round.js';

/** The problems and the time of a check, of attention unless its ids and failures are those of another contract. */
export interface CheckLimits<Id extends string = LawId, Failure extends object = RoundFailure> {
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
  readonly apart?: RoundRunner<Id, Failure> | undefined;
  /** Called after every run with the number of runs so far and of all runs. */
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** The results of all laws. */
export interface TriedLaws<Id extends string = LawId, Failure extends object = RoundFailure> {
  /** Whether some law was tried, and none is violated. */
  readonly pass: boolean;
  readonly seed: number;
  readonly laws: readonly LawResult<Id, Failure>[];
  /** Turns of all laws. */
  readonly runs: number;
  readonly seconds: number;
  /** Whether the time was up before every law had its runs. */
  readonly outOfTime: boolean;
}

/** Whether some law was tried, and none is violated. */
export function isPass(laws: readonly Pick<LawResult, 'status'>[]): boolean {
  return (
    laws.some(({ status }) => status === 'holds') &&
    laws.every(({ status }) => status !== 'violated')
  );
}

/**
 * Tries laws of any contract. They take turns, so that a bug that breaks many of them shows early; a failure is
 * simplified and its law tried no more.
 * @param here tries one round on this thread, by the seed of the check
 * @throws RequestError for runs that are no positive whole number, and a seed that is no whole number
 */
export async function tryLaws<Id extends string, Failure extends object & { round: number }>(
  all: readonly LawProgress<Id, Failure>[],
  here: (seed: number) => RoundRunner<Id, Failure>['tryRound'],
  options: CheckLimits<Id, Failure>,
): Promise<TriedLaws<Id, Failure>> {
  const { runs = 100, seconds = Infinity, shrinkSeconds = 10, bail = false, progress } = options;
  const { seed = Math.floor(Math.random() * 2 ** 31), apart } = options;
  if (!(Number.isSafeInteger(runs) && runs > 0))
    throw new RequestError(`runs is ${runs}; give a positive whole number`);
  if (!Number.isSafeInteger(seed)) throw new RequestError(`seed is ${seed}; give a whole number`);
  const start = performance.now();
  const total = runs * all.filter(({ isOpen }) => isOpen).length;
  const runner = apart === undefined || bail ? { lanes: 1, tryRound: here(seed) } : apart;
  const limits = { runs, bail, seconds, shrinkSeconds };
  const { done, outOfTime } = await takeTurns(all, runner, limits, (count) =>
    progress?.(count, total),
  );
  const results = all.map((law, position): LawResult<Id, Failure> => {
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
  };
}
