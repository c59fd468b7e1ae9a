import {
  checkKernel,
  lawOutcome,
  laws,
  planCheck,
  type CheckPlan,
  type CheckResult,
  type CheckScope,
  type KernelPromises,
  type LawId,
  type LawResult,
} from '../../../properties/index.js';
import {
  createCheckReport,
  kernelDoesNotRun,
  type CheckReport,
  type SavedViolation,
} from '../../report/json/index.js';
import { secondsSince } from '../document-head.js';
import type { ExecutionFailure, KernelUnderTest } from './kernel-under-test.js';
import { rejectEmptyPlan, rejectNothingTried } from './nothing-tried.js';

/** What is to be tried, and how often. */
export interface CheckScopeRequest {
  readonly scope: CheckScope;
  readonly runs: number;
  readonly seed: number;
  /** How long the whole check may take. */
  readonly seconds: number;
  /** Whether to stop at the first violation. */
  readonly bail: boolean;
}

/** A kernel to try, and what it promises. */
export interface CheckRequest extends CheckScopeRequest {
  readonly underTest: KernelUnderTest;
  readonly promises: KernelPromises;
  /** Whether a promised property that was never tried fails the check. */
  readonly strict?: boolean | undefined;
  /** The tool's version. */
  readonly version: string;
}

/** What a check hands out while it goes on. */
export interface CheckCallbacks {
  /** The share that is done: of the problems, or of the time if that is more. */
  readonly progress?: (share: number) => void;
  /** Keeps the problems of violations for replay; default: keeps none. */
  readonly saveFailures?: (
    results: readonly Pick<LawResult, 'id' | 'failure'>[],
  ) => Promise<ReadonlyMap<LawId, SavedViolation>>;
  /** Keeps the problem that a kernel could not answer; returns the reason, with the place. */
  readonly saveExecutionFailure?: (failure: ExecutionFailure) => Promise<string>;
}

/** What a check found that could not begin. */
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

function tryProperties(
  { underTest, promises, scope, runs, seed, seconds, bail }: CheckRequest,
  progress: (share: number) => void,
): Promise<CheckResult> {
  const start = performance.now();
  return checkKernel(underTest.kernel, promises, {
    ...scope,
    runs,
    seed,
    seconds,
    bail,
    progress: (done, total) =>
      progress(Math.min(1, Math.max(done / total, secondsSince(start) / seconds))),
  });
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
      ? await tryProperties(request, progress)
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
