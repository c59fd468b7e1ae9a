import { Worker } from 'node:worker_threads';
import { RequestError } from '../request-error.js';
import type { ErrorPlan, Slice, SliceErrors } from './error-plan.js';
import { createCandidates } from './candidates.js';
import { createErrorSlices } from './error-slice.js';
import type { RangeReductionPlan, SliceReduction } from './range-reduction-slice.js';
import { createReductionSlices } from './range-reduction-slice.js';
import {
  createRescaleSlices,
  createShareSlices,
  type CaseRange,
  type MeasuredCases,
  type PolynomialSharePlan,
  type RescalePlan,
} from './trade-offs/case-plans.js';
import type { PolynomialShareCase } from './trade-offs/polynomial-share-case.js';
import type { RescaleCase } from './trade-offs/rescale-case.js';

/** What a sweep does at every input, or on every problem. */
export type SweepPlan = ErrorPlan | RangeReductionPlan | RescalePlan | PolynomialSharePlan;

/** What a slice says, by the kind of the plan. */
interface SliceResults {
  readonly errors: SliceErrors;
  readonly 'range-reduction': SliceReduction;
  readonly rescale: MeasuredCases<RescaleCase>;
  readonly 'polynomial-share': MeasuredCases<PolynomialShareCase>;
}

/** What a slice of a sweep says. */
export type SliceResult<Plan extends SweepPlan> = SliceResults[Plan['kind']];

/**
 * What a worker answers a slice with: what the slice says, or why the request cannot be carried out,
 * because an error that is thrown in a thread reaches the other as a plain `Error`.
 */
export type SliceAnswer<Plan extends SweepPlan> =
  { readonly result: SliceResult<Plan> } | { readonly refusal: string };

/** What a plan is carried out on: a slice of inputs, or a range of problems. */
export type SliceOf<Plan extends SweepPlan> = Plan extends ErrorPlan | RangeReductionPlan
  ? Slice
  : CaseRange;

/** Called after each slice with how many inputs or problems are done and how many there are. */
export type SweepProgress = (done: number, total: number) => void;

/** How a sweep is carried out. */
export interface SweepOptions {
  /** Worker threads; default 1, this thread. The result does not depend on it. */
  readonly threads?: number;
  readonly progress?: SweepProgress;
}

function sliceRunner(plan: SweepPlan): (slice: Slice) => SliceResult<SweepPlan> {
  switch (plan.kind) {
    case 'errors':
      return createErrorSlices(plan, createCandidates());
    case 'range-reduction':
      return createReductionSlices(plan);
    case 'rescale':
      return createRescaleSlices(plan);
    case 'polynomial-share':
      return createShareSlices(plan);
  }
}

/** A function that carries a plan out on one slice; one per thread. */
export function createSliceRunner<Plan extends SweepPlan>(
  plan: Plan,
): (slice: SliceOf<Plan>) => SliceResult<Plan> {
  // The kind of the plan decides the kind of the result, which the compiler cannot see.
  return sliceRunner(plan) as (slice: SliceOf<Plan>) => SliceResult<Plan>;
}

/** Hands slice after slice to one worker until none is left. */
function drain<Plan extends SweepPlan>(
  worker: Worker,
  queue: Iterator<SliceOf<Plan>>,
  settle: (slice: SliceOf<Plan>, result: SliceResult<Plan>) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let current: SliceOf<Plan>;
    const next = (): void => {
      const { value, done } = queue.next();
      if (done === true) return resolve();
      current = value;
      worker.postMessage(current);
    };
    worker.on('message', (answer: SliceAnswer<Plan>) => {
      try {
        if ('refusal' in answer) throw new RequestError(answer.refusal);
        settle(current, answer.result);
        next();
      } catch (error) {
        reject(error);
      }
    });
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`a worker thread stopped with status ${code}`)));
    next();
  });
}

/**
 * Carries the plan out on every slice and hands each result to `settle`, in no particular order. The
 * work is shared among the threads, this one for a single thread.
 * @throws RequestError, from whatever thread, for a plan that cannot be carried out
 */
export async function sweep<Plan extends SweepPlan>(
  plan: Plan,
  slices: readonly SliceOf<Plan>[],
  { threads = 1, progress }: SweepOptions,
  settle: (result: SliceResult<Plan>) => void,
): Promise<void> {
  const size = ({ first, last }: CaseRange): number => last - first + 1;
  const total = slices.reduce((sum, slice) => sum + size(slice), 0);
  let done = 0;
  const finish = (slice: SliceOf<Plan>, result: SliceResult<Plan>): void => {
    settle(result);
    done += size(slice);
    progress?.(done, total);
  };
  if (threads === 1) {
    const run = createSliceRunner(plan);
    for (const slice of slices) finish(slice, run(slice));
    return;
  }
  const workers = Array.from(
    { length: Math.min(threads, slices.length) },
    () => new Worker(new URL('./sweep-worker.js', import.meta.url), { workerData: plan }),
  );
  const queue = slices.values();
  try {
    await Promise.all(workers.map((worker) => drain<Plan>(worker, queue, finish)));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}
