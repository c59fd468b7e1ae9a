import {
  applicableFaults,
  runRecurrence,
  unrounded,
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentFault,
  type RecurrentValue,
} from '../../../kernels/index.js';
import type { FormatName } from '../../formats/index.js';
import type { RecurrentQuantityName } from '../../problem/index.js';
import { formatNumber } from '../../words/index.js';
import { foundCause, unexplainedCause, type FoundCause } from '../conduct/causes.js';
import { findingsOf, outputWords } from '../findings.js';
import { rangeOf, type DrawnErrors, type DrawnQuantity, type RowGroup } from './draw-errors.js';
import { byHead, type RecurrentRows } from './given-quantities.js';
import { measureOf, type GivenRecurrences, type ToJudge } from './judge-measured.js';
import type { JudgedRecurrence } from './judge-recurrence.js';
import type { MeasuredPart } from './measure-part.js';

/** Tokens of a chunk of the kernels whose faults are tried, where none are declared. */
const usualChunk = 64;

/** Multiplications that the runs of all faults may take together: seconds. */
const mostWork = 2 ** 34;

/** A kernel in chunks that rounds nothing. */
function exactKernel(chunk: number): RecurrentArithmetic {
  const of = recurrentValues.map((value) => [value, 'fp64'] as const);
  return {
    form: 'chunked',
    chunk,
    inverse: 'substitution',
    formats: Object.fromEntries(of) as Record<RecurrentValue, FormatName>,
    outputs: {},
  };
}

/** What a kernel with a fault computes of the judged quantities; those that it leaves out are not known. */
function predict(
  { plan, given }: ToJudge,
  fault: RecurrentFault,
  arithmetic: RecurrentArithmetic,
): Readonly<Partial<Record<RecurrentQuantityName, Float64Array>>> {
  const { problem, gradientInputs } = plan.task;
  const hasGradients = given.some(({ name }) => name !== 'out' && name.startsWith('d'));
  const options = hasGradients && gradientInputs ? { gradientInputs, fault } : { fault };
  const results = runRecurrence(problem, arithmetic, unrounded, options);
  return Object.fromEntries(
    given.flatMap(({ name, rows }) => {
      const values = results[name];
      return values === undefined ? [] : [[name, byHead(values, rows)]];
    }),
  );
}

/** Whether a quantity passes all of its tests. */
function passes(judged: JudgedRecurrence): boolean {
  return findingsOf([judged], { ...outputWords, prefixesTests: true, arithmetic: '' }).length === 0;
}

/** Errors beside a fault that are as many times what roundings of a right kernel make, where results are as large. */
const mostTimes = 3;

/** What comes so many times as near to a fault's results as to the right ones has that fault. */
const leastGain = 2;

/** So does what is as near as a right kernel is to the right results, if it is nearer than to these by so much of roundings' variance. */
const alike = 1.25;
const leastEnergy = 0.1;

/** Whether a distance from a fault's results is small, beside the distance from the right ones. */
function isNear(distance: number, ofRight: number): boolean {
  if (distance <= Math.min(mostTimes, ofRight / leastGain)) return true;
  return distance <= alike && ofRight ** 2 - distance ** 2 >= leastEnergy;
}

/** The root mean square of a group's elements. */
function meanSquare(values: Float64Array, group: RowGroup, rows: RecurrentRows): number {
  const [first, end] = rangeOf(group, rows);
  let sum = 0;
  for (let i = first; i < end; i++) sum += values[i] * values[i];
  return Math.sqrt(sum / Math.max(1, end - first));
}

/**
 * The distance of what was given from what a fault gives, in what roundings make: the largest of all heads and chunks. A fault that makes results
 * larger makes roundings larger.
 */
function distanceFrom(
  predicted: Float64Array,
  { rows, given: { values } }: GivenRecurrences[number],
  { exact, groups }: DrawnQuantity,
  draws: readonly DrawnErrors[],
): number {
  // What is no finite number is explained by a fault that gives none there, and by no other.
  const errors = values.map((x, i) => {
    if (Number.isFinite(x) && Number.isFinite(predicted[i])) return x - predicted[i];
    return Number.isFinite(x) === Number.isFinite(predicted[i]) ? 0 : Infinity;
  });
  const { queries, vDim } = rows.shape;
  let worst = 0;
  groups.forEach((group, at) => {
    const measured = meanSquare(errors, group, rows);
    if (measured === 0 || group.rows * queries * vDim === 0) return;
    const energy = (drawn: DrawnErrors) =>
      drawn.energies[at].reduce((sum, x) => sum + x, 0) / drawn.energies[at].length;
    const expected = Math.sqrt(Math.max(...draws.map(energy)) / (group.rows * vDim));
    const size = meanSquare(exact, group, rows);
    const ratio = Math.max(1, size === 0 ? 1 : meanSquare(predicted, group, rows) / size);
    worst = Math.max(worst, measured / (expected * ratio));
  });
  return worst;
}

/** The largest distance of all quantities from what is predicted of them; of one of which nothing is, 0. */
function distanceOf(
  toJudge: ToJudge,
  measured: readonly MeasuredPart[],
  predictedOf: (one: GivenRecurrences[number], exact: Float64Array) => Float64Array | undefined,
): number {
  const distances = toJudge.given.map((one) => {
    const { drawnOf, draws } = measureOf(one, toJudge, measured);
    const predicted = predictedOf(one, drawnOf.exact);
    return predicted === undefined ? 0 : distanceFrom(predicted, one, drawnOf, draws);
  });
  return Math.max(...distances);
}

/** The work of one run of a problem, in multiplications. */
function workOf({ shape: { batch, tokens, valueHeads, keyDim, valueDim } }: ToJudge): number {
  return batch * tokens * valueHeads * (keyDim + valueDim) * usualChunk * 4;
}

/**
 * The cause of a failure: the fault of which a kernel computes what was given, within what roundings explain. Faults are tried on problems of a size
 * that takes seconds.
 */
export function explainRecurrence(
  toJudge: ToJudge,
  measured: readonly MeasuredPart[],
  judged: readonly JudgedRecurrence[],
): FoundCause {
  const { problem, gradientInputs } = toJudge.plan.task;
  const chunk = toJudge.plan.declared.chunk ?? usualChunk;
  const faults = applicableFaults({ problem, chunk, gradientInputs });
  if (workOf(toJudge) * faults.length > mostWork)
    return unexplainedCause(['the problem is too large to try faults on: give some of its heads']);
  const arithmetic = exactKernel(chunk);
  const failing = toJudge.given.filter((_, i) => !passes(judged[i])).map(({ name }) => name);
  // What is as near to the right results has a fault that is none of these.
  const ofRight = distanceOf(toJudge, measured, (_, exact) => exact);
  const accepted = faults.flatMap((fault) => {
    const predicted = predict(toJudge, fault, arithmetic);
    // A fault of which nothing is known where the kernel fails explains nothing.
    if (!failing.every((name) => predicted[name] !== undefined)) return [];
    const distance = distanceOf(toJudge, measured, ({ name }) => predicted[name]);
    return isNear(distance, ofRight) ? [{ fault, distance }] : [];
  });
  const [first, ...others] = accepted.sort((a, b) => a.distance - b.distance);
  if (first === undefined) return unexplainedCause();
  const evidence = `what this fault gives is within ${formatNumber(first.distance)} times what roundings make, on every head and chunk`;
  return foundCause(
    first.fault,
    [evidence],
    others.map(({ fault }) => fault),
  );
}
