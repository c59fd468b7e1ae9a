import {
  checkKernel,
  type CheckPlan,
  type CheckResult,
  type CheckScope,
  describeNothingTried,
  type KernelPromises,
  type LawId,
  lawOutcome,
  type LawResult,
  laws,
  planCheck,
} from '../../../properties/index.js';
import {
  type CheckReport,
  createCheckReport,
  kernelDoesNotRun,
  type SavedViolation,
} from '../../report/json/check/index.js';
import { RequestError } from '../../request-error.js';
import { secondsSince } from '../audit/index.js';
import { changedPromises, startCheckThreads } from './check-threads.js';
import type { ExecutionFailure, KernelUnderTest } from './kernel-under-test.js';

type TriedLaw = Pick<LawResult, 'status' | 'runs' | 'skipped'> & { readonly id: string };

/** @throws RequestError when a plan leaves no law to try */
export function rejectEmptyPlan({ laws }: CheckPlan): void {
  if (laws.some(({ skipped }) => skipped === null)) return;
  const untried = laws.map(({ id, skipped }) => ({
    id,
    status: 'skipped' as const,
    runs: 0,
    skipped,
  }));
  throw new RequestError(describeNothingTried({ laws: untried }));
}

/** @throws RequestError when no law was tried on anything: that is neither a pass nor a failure */
export function rejectNothingTried(laws: readonly TriedLaw[]): void {
  if (laws.some(({ status }) => status === 'holds' || status === 'violated')) return;
  throw new RequestError(describeNothingTried({ laws }));
}

/**
 * Rejects a report on which nothing was tried.
 * @throws RequestError unless a property was tried, or the kernel does not run, which is a failure
 */
export function rejectEmptyReport({ properties, execution }: CheckReport): void {
  if (execution !== null) return;
  rejectNothingTried(
    properties.map(({ name, result, runs, skipped }) => ({
      id: name,
      status: result,
      runs,
      skipped,
    })),
  );
}

/** The laws, problems and limits of a check. */
export interface CheckScopeRequest {
  readonly scope: CheckScope;
  readonly runs: number;
  readonly seed: number;
  /** The time limit of the whole check. */
  readonly seconds: number;
  /** Whether to stop at the first violation. */
  readonly bail: boolean;
}

/** A kernel to try, and its promises. */
export interface CheckRequest extends CheckScopeRequest {
  readonly underTest: KernelUnderTest;
  readonly promises: KernelPromises;
  /** Whether a promised property that was never tried fails the check. */
  readonly strict?: boolean | undefined;
  /**
   * Number of threads that try the properties, for checks that are worth it, of a model of the library, and
   * without `bail`; default 1: this one. Within the same time limit the results do not depend on it.
   */
  readonly threads?: number | undefined;
  /** The tool's version. */
  readonly version: string;
}

/** Callbacks of a check in progress. */
export interface CheckCallbacks {
  /** Called with the share that is done: of the problems, or of the time if that is more. */
  readonly progress?: (share: number) => void;
  /** Keeps the problems of violations for replay; default: keeps none. */
  readonly saveFailures?: (
    results: readonly Pick<LawResult, 'id' | 'failure'>[],
  ) => Promise<ReadonlyMap<LawId, SavedViolation>>;
  /** Keeps the problem that a kernel could not answer; returns the reason, with the place. */
  readonly saveExecutionFailure?: (failure: ExecutionFailure) => Promise<string>;
}

/** The result of a check that could not begin. */
function untried(
  { laws: planned, promises }: CheckPlan,
  seed: number,
  seconds: number,
): CheckResult {
  return {
    pass: false,
    seed,
    laws: planned.map((law) => {
      const counts = { runs: 0, unsupported: 0, refusal: '' };
      return {
        id: law.id,
        strength: promises.laws[law.id],
        runs: 0,
        unsupported: 0,
        sizes: null,
        widened: [],
        ...lawOutcome(law, counts, false, kernelDoesNotRun),
        seconds: 0,
        failure: null,
      };
    }),
    runs: 0,
    seconds,
    outOfTime: false,
    notes: [],
  };
}

/** Number of rounds that are worth another thread: they take longer than its start. */
const roundsPerThread = 50;

/** The threads that a check is worth; null for this one alone. */
function threadsOf(request: CheckRequest, plan: CheckPlan) {
  const { underTest, promises, scope, runs, seed, bail, threads = 1 } = request;
  const { elsewhere } = underTest;
  const rounds = runs * plan.laws.filter(({ skipped }) => skipped === null).length;
  const used = Math.min(threads, Math.floor(rounds / roundsPerThread));
  if (elsewhere === null || bail || used < 2) return null;
  return startCheckThreads(used, {
    model: elsewhere,
    promises: changedPromises(underTest.promises, promises),
    scope,
    seed,
  });
}

async function tryProperties(
  request: CheckRequest,
  plan: CheckPlan,
  progress: (share: number) => void,
): Promise<CheckResult> {
  const { underTest, promises, scope, runs, seed, seconds, bail } = request;
  const start = performance.now();
  const apart = threadsOf(request, plan);
  return checkKernel(underTest.kernel, promises, {
    ...scope,
    ...(apart === null ? {} : { apart }),
    runs,
    seed,
    seconds,
    bail,
    progress: (done, total) =>
      progress(Math.min(1, Math.max(done / total, secondsSince(start) / seconds))),
  }).finally(() => apart?.close());
}

/**
 * Tries properties on a kernel.
 * @throws RequestError when nothing could be tried
 */
export async function checkProperties(
  request: CheckRequest,
  callbacks: CheckCallbacks = {},
): Promise<CheckReport> {
  const { underTest, promises, scope, seed, runs, strict, version } = request;
  const {
    progress = () => undefined,
    saveFailures = async () => new Map<LawId, SavedViolation>(),
    saveExecutionFailure = async ({ reason }) => reason,
  } = callbacks;
  const plan = planCheck(promises, scope);
  rejectEmptyPlan(plan);
  const start = performance.now();
  const broken = await underTest.whyNotRunning(plan.promises);
  const result =
    broken === null
      ? await tryProperties(request, plan, progress)
      : untried(plan, seed, secondsSince(start));
  if (broken === null) rejectNothingTried(result.laws);
  return createCheckReport(result, {
    version,
    kernel: underTest.reported,
    promises: plan.promises,
    laws,
    runsPerProperty: runs,
    strict,
    saved: await saveFailures(result.laws),
    execution: broken === null ? null : await saveExecutionFailure(broken),
  });
}
