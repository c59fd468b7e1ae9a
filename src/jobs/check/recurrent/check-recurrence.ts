import {
  checkRecurrentKernel,
  recurrentLawIds,
  resolveRecurrentPromises,
  type RecurrentCheckResult,
  type RecurrentLawId,
  type RecurrentLawResult,
  type RecurrentPromises,
  type RecurrentRegimeName,
  type ResolvedRecurrentPromises,
} from '../../../../properties/index.js';
import {
  createRecurrentCheckReport,
  kernelDoesNotRun,
  type CheckReport,
  type SavedViolation,
} from '../../../report/json/check/index.js';
import { secondsSince } from '../../audit/index.js';
import { rejectNothingTried, type CheckScopeRequest } from '../run.js';
import type { RecurrenceUnderTest, RecurrentExecutionFailure } from './recurrence-under-test.js';

/** A kernel of linear attention to try, and its promises. */
export interface RecurrentCheckRequest extends Omit<CheckScopeRequest, 'scope'> {
  /** All where they are left out. */
  readonly laws?: readonly RecurrentLawId[] | undefined;
  readonly regimes?: readonly RecurrentRegimeName[] | undefined;
  readonly underTest: RecurrenceUnderTest;
  readonly promises: RecurrentPromises;
  /** Whether a promised property that was never tried fails the check. */
  readonly strict?: boolean | undefined;
  /** The tool's version. */
  readonly version: string;
}

/** Callbacks of a check of linear attention in progress. */
export interface RecurrentCheckCallbacks {
  /** Called with the share that is done: of the problems, or of the time if that is more. */
  readonly progress?: (share: number) => void;
  /** Keeps the problems of violations for replay; default: keeps none. */
  readonly saveFailures?: (
    results: readonly RecurrentLawResult[],
  ) => Promise<ReadonlyMap<RecurrentLawId, SavedViolation>>;
  /** Keeps the problem that a kernel could not answer; returns the reason, with the place. */
  readonly saveExecutionFailure?: (failure: RecurrentExecutionFailure) => Promise<string>;
}

/** The result of a check that could not begin. */
function untried(
  { laws = recurrentLawIds, seed }: RecurrentCheckRequest,
  promises: ResolvedRecurrentPromises,
  seconds: number,
): RecurrentCheckResult {
  const results = laws.map((id): RecurrentLawResult => ({
    id,
    strength: promises.laws[id],
    status: 'untried',
    runs: 0,
    tried: 0,
    skipped: kernelDoesNotRun,
    seconds: 0,
    failure: null,
  }));
  return { pass: false, seed, seconds, outOfTime: false, laws: results };
}

/**
 * Tries properties of linear attention on a kernel.
 * @throws RequestError when nothing could be tried
 */
export async function checkRecurrence(
  request: RecurrentCheckRequest,
  callbacks: RecurrentCheckCallbacks = {},
): Promise<CheckReport> {
  const { underTest, laws, regimes, seed, runs, seconds, bail, strict, version } = request;
  const {
    progress = () => undefined,
    saveFailures = async () => new Map<RecurrentLawId, SavedViolation>(),
    saveExecutionFailure = async ({ reason }) => reason,
  } = callbacks;
  const promises = resolveRecurrentPromises(request.promises);
  const start = performance.now();
  const share = (done: number, total: number) =>
    progress(Math.min(1, Math.max(done / total, secondsSince(start) / seconds)));
  const broken = await underTest.whyNotRunning(promises);
  const result =
    broken === null
      ? await checkRecurrentKernel(underTest.kernel, request.promises, {
          laws,
          regimes,
          seed,
          runs,
          seconds,
          bail,
          progress: share,
        })
      : untried(request, promises, secondsSince(start));
  if (broken === null) rejectNothingTried(result.laws);
  return createRecurrentCheckReport(result, {
    version,
    kernel: underTest.reported,
    promises,
    runsPerProperty: runs,
    strict,
    saved: await saveFailures(result.laws),
    execution: broken === null ? null : await saveExecutionFailure(broken),
  });
}
