import { RequestError } from '../../../src/request-error.js';
import type { LawStrength } from '../../laws/index.js';
import {
  recurrentLaw,
  recurrentLawIds,
  type RecurrentKernel,
  type RecurrentLawId,
} from '../laws/index.js';
import {
  describeRecurrence,
  recurrentRegimeNames,
  type RecurrentRegimeName,
} from '../problems/index.js';
import { requireKnown, resolveRecurrentPromises, type RecurrentPromises } from './promises.js';
import { tryRecurrentRound, usableRegimes, type RecurrentFailure } from './try-round.js';

/** What to try, and for how long. */
export interface RecurrentCheckOptions {
  /** Default: all. */
  readonly laws?: readonly RecurrentLawId[] | undefined;
  /** Default: all. */
  readonly regimes?: readonly RecurrentRegimeName[] | undefined;
  /** Problems of each law; default 100. */
  readonly runs?: number | undefined;
  /** The same seed draws the same problems; default: drawn at random. */
  readonly seed?: number | undefined;
  /** Seconds after which no further problem is tried; default none. */
  readonly seconds?: number | undefined;
  /** The most seconds to simplify a failing problem; default 10. */
  readonly shrinkSeconds?: number | undefined;
  /** Whether to stop at the first failure; default false. */
  readonly bail?: boolean | undefined;
  /** Called before each problem with how many turns are done, and how many there are. */
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** A violation, and when it was found. */
export interface FoundRecurrentFailure extends RecurrentFailure {
  /** Turns of all laws until then, this one included. */
  readonly runsUntil: number;
  /** Seconds from the start until then. */
  readonly secondsUntil: number;
}

/** What became of one law. */
export interface RecurrentLawResult {
  readonly id: RecurrentLawId;
  readonly strength: LawStrength | 'none';
  readonly status: 'holds' | 'violated' | 'skipped' | 'untried';
  /** Its turns, and those in which it was tried on a problem. */
  readonly runs: number;
  readonly tried: number;
  /** Why it was not tried; null where it was. */
  readonly skipped: string | null;
  readonly seconds: number;
  readonly failure: FoundRecurrentFailure | null;
}

/** The results of all laws. */
export interface RecurrentCheckResult {
  /** Whether some law was tried, and none is violated. */
  readonly pass: boolean;
  readonly seed: number;
  readonly seconds: number;
  /** Whether the time was up before every law had its turns. */
  readonly outOfTime: boolean;
  readonly laws: readonly RecurrentLawResult[];
}

/** A law and what was counted of it. */
interface LawCounts {
  readonly id: RecurrentLawId;
  readonly usable: readonly RecurrentRegimeName[] | string;
  runs: number;
  tried: number;
  reason: string;
  seconds: number;
  failure: FoundRecurrentFailure | null;
}

function resultOf(
  { id, usable, runs, tried, reason, seconds, failure }: LawCounts,
  strength: LawStrength | 'none',
): RecurrentLawResult {
  const counts = { id, strength, runs, tried, seconds, failure };
  if (failure !== null) return { ...counts, status: 'violated', skipped: null };
  if (tried > 0) return { ...counts, status: 'holds', skipped: null };
  if (typeof usable === 'string') return { ...counts, status: 'skipped', skipped: usable };
  const untried = runs > 0 ? `none of its problems could be tried: ${reason}` : 'the time was up';
  return { ...counts, status: 'untried', skipped: untried };
}

/** The turns of laws, round after round; a law that failed has no more. */
function* turnsOf(all: readonly LawCounts[], runs: number) {
  for (let round = 1; round <= runs; round++)
    for (const law of all)
      if (typeof law.usable !== 'string' && law.failure === null)
        yield { law, regimes: law.usable, round };
}

/** @throws RequestError for unknown laws and regimes, and numbers out of range */
function readOptions(options: RecurrentCheckOptions) {
  const { laws = recurrentLawIds, regimes = recurrentRegimeNames, runs = 100 } = options;
  const { seed = Math.floor(Math.random() * 2 ** 31) } = options;
  requireKnown('law', laws, recurrentLawIds);
  requireKnown('regime', regimes, recurrentRegimeNames);
  if (!(Number.isSafeInteger(runs) && runs > 0))
    throw new RequestError(`runs is ${runs}; give a positive whole number`);
  if (!Number.isSafeInteger(seed)) throw new RequestError(`seed is ${seed}; give a whole number`);
  return { laws, regimes, runs, seed };
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
  const { laws, regimes, runs, seed } = readOptions(options);
  const { seconds = Infinity, shrinkSeconds = 10, bail = false, progress } = options;
  const promises = resolveRecurrentPromises(given);
  const start = performance.now();
  const elapsed = () => (performance.now() - start) / 1000;
  const all = laws.map((id): LawCounts => {
    const usable = usableRegimes(id, promises, regimes);
    return { id, usable, runs: 0, tried: 0, reason: '', seconds: 0, failure: null };
  });
  const total = runs * all.filter(({ usable }) => typeof usable !== 'string').length;
  let [done, outOfTime] = [0, false];
  for (const { law, regimes: usable, round } of turnsOf(all, runs)) {
    outOfTime = elapsed() >= seconds;
    if (outOfTime) break;
    progress?.(done++, total);
    const begin = elapsed();
    const planned = { id: law.id, regimes: usable, promises, seed };
    const result = await tryRecurrentRound(planned, round, kernel, shrinkSeconds);
    law.runs++;
    law.seconds += elapsed() - begin;
    if (result.status === 'unsupported') {
      law.reason = result.reason;
      continue;
    }
    law.tried++;
    if (result.failure === null) continue;
    law.failure = { ...result.failure, runsUntil: done, secondsUntil: elapsed() };
    if (bail) break;
  }
  const results = all.map((law) => resultOf(law, promises.laws[law.id]));
  const isTried = results.some(({ status }) => status === 'holds');
  const pass = isTried && results.every(({ failure }) => failure === null);
  return { pass, seed, seconds: elapsed(), outOfTime, laws: results };
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
  if (!result.pass)
    throw new RequestError(
      'nothing was checked: no law was tried on any problem; give promises that fit the kernel',
    );
  return result;
}
