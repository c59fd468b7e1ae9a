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
  type PlannedLaw,
  type RoundFailure,
  type TriedLaws,
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
export function rejectEmptyPlan({
  laws,
}: {
  readonly laws: readonly (Pick<PlannedLaw, 'skipped'> & { readonly id: string })[];
}): void {
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
export interface CheckScopeRequest extends CheckLimitsRequest {
  readonly scope: CheckScope;
}

/** The problems and limits of a check, of whatever contract. */
export interface CheckLimitsRequest {
  readonly runs: number;
  readonly seed: number;
  /** The time limit of the whole check. */
  readonly seconds: number;
  /** Whether to stop at the first violation. */
  readonly bail: boolean;
}

/** How a check is carried out and reported, of whatever contract. */
export interface CheckConduct {
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

/** A kernel to try, and its promises. */
export interface CheckRequest extends CheckScopeRequest, CheckConduct {
  readonly underTest: KernelUnderTest;
  readonly promises: KernelPromises;
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

/** The results of laws of a check that could not begin. */
export function untriedLaws<Id extends string, Failure extends object>(
  planned: readonly (Pick<PlannedLaw, 'skipped' | 'isPromised'> & { readonly id: Id })[],
  strengths: Readonly<Record<Id, LawResult['strength']>>,
  seed: number,
  seconds: number,
): TriedLaws<Id, Failure> {
  const counts = { runs: 0, unsupported: 0, refusal: '' };
  const laws = planned.map((law): LawResult<Id, Failure> => ({
    id: law.id,
    strength: strengths[law.id],
    runs: 0,
    unsupported: 0,
    sizes: null,
    widened: [],
    ...lawOutcome(law, counts, false, kernelDoesNotRun),
    seconds: 0,
    failure: null,
  }));
  return { pass: false, seed, laws, runs: 0, seconds, outOfTime: false };
}

/** Number of rounds that are worth another thread: they take longer than its start. */
const roundsPerThread = 50;

/** The number of threads that a check is worth; 0 for this one alone. */
export function threadsWorth(
  laws: readonly Pick<PlannedLaw, 'skipped'>[],
  { runs, bail, threads = 1 }: Pick<CheckRequest, 'runs' | 'bail' | 'threads'>,
): number {
  const rounds = runs * laws.filter(({ skipped }) => skipped === null).length;
  const used = Math.min(threads, Math.floor(rounds / roundsPerThread));
  return bail || used < 2 ? 0 : used;
}

/** The threads that a check is worth; null for this one alone. */
function threadsOf(request: CheckRequest, plan: CheckPlan) {
  const { underTest, promises, scope, seed } = request;
  const { elsewhere: model } = underTest;
  const used = threadsWorth(plan.laws, request);
  if (model === null || used === 0) return null;
  const changed = changedPromises(underTest.promises, promises);
  return startCheckThreads<LawId, RoundFailure>(used, {
    contract: 'attention',
    model,
    promises: changed,
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
      : {
          ...untriedLaws<LawId, RoundFailure>(
            plan.laws,
            plan.promises.laws,
            seed,
            secondsSince(start),
          ),
          notes: [],
        };
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
