import { Worker } from 'node:worker_threads';
import { RequestError } from '../request-error.js';
import type { ErrorPlan, Slice, SliceErrors } from './error-plan.js';
import { createCandidates } from './functions.js';
import { createErrorSlices } from './error-slice.js';
import {
  createReductionSlices,
  type RangeReductionPlan,
  type SliceReduction,
} from './techniques/range-reduction-slice.js';
import {
  type CaseRange,
  createRescaleSlices,
  createShareSlices,
  type MeasuredCases,
  type PolynomialSharePlan,
  type RescalePlan,
} from './trade-offs/case-plans.js';
import type { PolynomialShareCase } from './trade-offs/polynomial-share-case.js';
import type { RescaleCase } from './trade-offs/rescale-case.js';

/**
 * Keeps the results of a sweep that is carried out in several sittings or by several processes. Its
 * slices are cut into units, numbered from 0, which are kept whole.
 */
export interface SweepLedger {
  /** Called before any work, with the number of units. */
  readonly begin?: (units: number) => void;
  /** The known results of a unit, one for each of its slices; undefined where none are known yet. */
  readonly recall: (unit: number) => readonly unknown[] | undefined;
  /** Whether a unit without known results is to be carried out here. */
  readonly isOwn: (unit: number) => boolean;
  /** Keeps the results of a unit. */
  readonly record: (unit: number, results: readonly unknown[]) => void;
}

/** Thrown at the end of a sweep that did its share, when units are left to other processes. */
export class UnfinishedSweep extends Error {
  override readonly name = 'UnfinishedSweep';
  /** The units without known results. */
  readonly missing: readonly number[];

  constructor(missing: readonly number[]) {
    super(`${missing.length} units of the sweep are left to others`);
    this.missing = missing;
  }
}

/** Maximum number of units of a sweep: those of the longest sweep take about a second each. */
const mostUnits = 256;

/** The slices of a sweep by unit, in their order; the same for the same number of slices. */
function unitsOf<Slice>(slices: readonly Slice[]): readonly (readonly Slice[])[] {
  const size = Math.ceil(slices.length / mostUnits);
  return Array.from({ length: Math.ceil(slices.length / Math.max(size, 1)) }, (_, unit) =>
    slices.slice(unit * size, (unit + 1) * size),
  );
}

/** The work of a sweep at every input, or on every problem. */
export type SweepPlan = ErrorPlan | RangeReductionPlan | RescalePlan | PolynomialSharePlan;

/** The result of a slice, by the kind of the plan. */
interface SliceResults {
  readonly errors: SliceErrors;
  readonly 'range-reduction': SliceReduction;
  readonly rescale: MeasuredCases<RescaleCase>;
  readonly 'polynomial-share': MeasuredCases<PolynomialShareCase>;
}

/** The result of a slice of a sweep. */
export type SliceResult<Plan extends SweepPlan> = SliceResults[Plan['kind']];

/**
 * A worker's answer to a slice: its result, or the reason why the request cannot be carried out,
 * because an error that is thrown in a thread reaches the other as a plain `Error`.
 */
export type SliceAnswer<Plan extends SweepPlan> =
  { readonly result: SliceResult<Plan> } | { readonly refusal: string };

/** A part of a plan's work: a slice of inputs, or a range of problems. */
export type SliceOf<Plan extends SweepPlan> = Plan extends ErrorPlan | RangeReductionPlan
  ? Slice
  : CaseRange;

/** Called after each slice with the number of finished inputs or problems and the number of all. */
export type SweepProgress = (done: number, total: number) => void;

/** Options for carrying out a sweep. */
export interface SweepOptions {
  /** Worker threads; default 1, this thread. The result does not depend on it. */
  readonly threads?: number;
  readonly progress?: SweepProgress;
  /** Store in which results are kept and looked up; default none. */
  readonly ledger?: SweepLedger;
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

/** Creates a function that carries a plan out on one slice; one for each thread. */
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
 * Carries the plan out on the slices and hands each result to `settle`, in no particular order. The
 * work is shared among the threads, this one for a single thread.
 */
async function sweepSlices<Plan extends SweepPlan>(
  plan: Plan,
  slices: readonly SliceOf<Plan>[],
  threads: number,
  settle: (slice: SliceOf<Plan>, result: SliceResult<Plan>) => void,
): Promise<void> {
  if (slices.length === 0) return;
  if (threads === 1) {
    const run = createSliceRunner(plan);
    for (const slice of slices) settle(slice, run(slice));
    return;
  }
  const workers = Array.from(
    { length: Math.min(threads, slices.length) },
    () => new Worker(new URL('./sweep-worker.js', import.meta.url), { workerData: plan }),
  );
  const queue = slices.values();
  try {
    await Promise.all(workers.map((worker) => drain<Plan>(worker, queue, settle)));
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

/**
 * Hands over the results that the ledger knows, and gives it those of the other units once these
 * are complete.
 * @returns the slices to carry out here, and a function that takes a result
 */
function consultLedger<Plan extends SweepPlan>(
  slices: readonly SliceOf<Plan>[],
  ledger: SweepLedger,
  settle: (slice: SliceOf<Plan>, result: SliceResult<Plan>) => void,
) {
  const units = unitsOf(slices);
  ledger.begin?.(units.length);
  const own: SliceOf<Plan>[] = [];
  const missing: number[] = [];
  const places = new Map<SliceOf<Plan>, { unit: number; index: number }>();
  const open = new Map<number, { results: SliceResult<Plan>[]; left: number }>();
  for (const [unit, members] of units.entries()) {
    const known = ledger.recall(unit) as readonly SliceResult<Plan>[] | undefined;
    if (known !== undefined) members.forEach((slice, i) => settle(slice, known[i]));
    else if (!ledger.isOwn(unit)) missing.push(unit);
    else {
      members.forEach((slice, index) => places.set(slice, { unit, index }));
      open.set(unit, { results: [], left: members.length });
      own.push(...members);
    }
  }
  const keep = (slice: SliceOf<Plan>, result: SliceResult<Plan>): void => {
    settle(slice, result);
    const { unit, index } = places.get(slice)!;
    const found = open.get(unit)!;
    found.results[index] = result;
    if (--found.left > 0) return;
    open.delete(unit);
    ledger.record(unit, found.results);
  };
  return { own, missing, keep };
}

/**
 * Carries the plan out on every slice and hands each result to `settle`, in no particular order.
 * @throws RequestError, from any thread, for a plan that cannot be carried out
 * @throws UnfinishedSweep when the ledger leaves units to others, after its own are done
 */
export async function sweep<Plan extends SweepPlan>(
  plan: Plan,
  slices: readonly SliceOf<Plan>[],
  { threads = 1, progress, ledger }: SweepOptions,
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
  if (ledger === undefined) return sweepSlices(plan, slices, threads, finish);
  const { own, missing, keep } = consultLedger<Plan>(slices, ledger, finish);
  await sweepSlices<Plan>(plan, own, threads, keep);
  if (missing.length > 0) throw new UnfinishedSweep(missing);
}
