import {
  checkRecurrentKernel,
  planRecurrentCheck,
  type RecurrentCheckPlan,
  type RecurrentCheckResult,
  type RecurrentCheckScope,
  type RecurrentFailure,
  type RecurrentLawId,
  type RecurrentLawResult,
  type RecurrentPromises,
} from '../../../../properties/index.js';
import {
  createRecurrentCheckReport,
  type CheckReport,
  type SavedViolation,
} from '../../../report/json/check/index.js';
import { secondsSince } from '../../audit/index.js';
import { changedPromises, startCheckThreads } from '../check-threads.js';
import {
  rejectEmptyPlan,
  rejectNothingTried,
  threadsWorth,
  untriedLaws,
  type CheckConduct,
  type CheckLimitsRequest,
} from '../run.js';
import type { RecurrenceUnderTest, RecurrentExecutionFailure } from './recurrence-under-test.js';

/** A kernel of linear attention to try, and its promises. */
export interface RecurrentCheckRequest extends CheckLimitsRequest, CheckConduct {
  readonly scope: RecurrentCheckScope;
  readonly underTest: RecurrenceUnderTest;
  readonly promises: RecurrentPromises;
}

/** Callbacks of a check of linear attention in progress. */
export interface RecurrentCheckCallbacks {
  /** Called with the share that is done: of the problems, or of the time if that is more. */
  readonly progress?: (share: number) => void;
  /** Keeps the problems of violations for replay; default: keeps none. */
  readonly saveFailures?: (
    results: readonly Pick<RecurrentLawResult, 'id' | 'failure'>[],
  ) => Promise<ReadonlyMap<RecurrentLawId, SavedViolation>>;
  /** Keeps the problem that a kernel could not answer; returns the reason, with the place. */
  readonly saveExecutionFailure?: (failure: RecurrentExecutionFailure) => Promise<string>;
}

async function tryProperties(
  request: RecurrentCheckRequest,
  plan: RecurrentCheckPlan,
  progress: (share: number) => void,
): Promise<RecurrentCheckResult> {
  const { underTest, promises, scope, runs, seed, seconds, bail } = request;
  const start = performance.now();
  const used = threadsWorth(plan.laws, request);
  const { elsewhere: model } = underTest;
  const apart =
    model === null || used === 0
      ? undefined
      : startCheckThreads<RecurrentLawId, RecurrentFailure>(used, {
          contract: 'recurrent',
          model,
          promises: changedPromises(underTest.promises, promises),
          scope,
          seed,
        });
  return checkRecurrentKernel(underTest.kernel, promises, {
    ...scope,
    apart,
    runs,
    seed,
    seconds,
    bail,
    progress: (done, total) =>
      progress(Math.min(1, Math.max(done / total, secondsSince(start) / seconds))),
  }).finally(() => apart?.close());
}

/**
 * Tries properties of linear attention on a kernel.
 * @throws RequestError when nothing could be tried
 */
export async function checkRecurrence(
  request: RecurrentCheckRequest,
  callbacks: RecurrentCheckCallbacks = {},
): Promise<CheckReport> {
  const { underTest, scope, seed, runs, strict, version } = request;
  const {
    progress = () => undefined,
    saveFailures = async () => new Map<RecurrentLawId, SavedViolation>(),
    saveExecutionFailure = async ({ reason }) => reason,
  } = callbacks;
  const plan = planRecurrentCheck(request.promises, scope);
  rejectEmptyPlan(plan);
  const start = performance.now();
  const { promises } = plan;
  const broken = await underTest.whyNotRunning(promises);
  const result =
    broken === null
      ? await tryProperties(request, plan, progress)
      : untriedLaws<RecurrentLawId, RecurrentFailure>(
          plan.laws,
          promises.laws,
          seed,
          secondsSince(start),
        );
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
