import {
  recurrentFaults,
  runRecurrence,
  unrounded,
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentFault,
  type RecurrentValue,
} from '../../../kernels/index.js';
import type { FormatName } from '../../formats/index.js';
import { foundCause, unexplainedCause, type FoundCause } from '../conduct/causes.js';
import { findingsOf, outputWords } from '../findings.js';
import { byHead } from './given-quantities.js';
import { judgeQuantities, type PredictedValues, type ToJudge } from './judge-measured.js';
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
    isReversed: false,
    formats: Object.fromEntries(of) as Record<RecurrentValue, FormatName>,
    outputs: {},
  };
}

/** What a kernel with a fault computes of the judged quantities; those that it leaves out are not known. */
function predict(
  { plan, given }: ToJudge,
  fault: RecurrentFault,
  arithmetic: RecurrentArithmetic,
): PredictedValues {
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

/** The sum of squares of the differences of two lists of numbers, those aside that are not finite. */
function squaresBetween(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = a[i] - b[i];
    if (Number.isFinite(difference)) sum += difference * difference;
  }
  return sum;
}

const words = { ...outputWords, prefixesTests: true, arithmetic: '' };

/** Whether a quantity passes all of its tests. */
function passes(judged: JudgedRecurrence): boolean {
  return findingsOf([judged], words).length === 0;
}

/** Whether a prediction is nearer to what failed than the exact values are: a quick test before all others. */
function isNearer(
  { given }: ToJudge,
  judged: readonly JudgedRecurrence[],
  predicted: PredictedValues,
): boolean {
  return given.every(({ name, given: { values } }, i) => {
    const of = predicted[name];
    if (of === undefined || passes(judged[i])) return true;
    const { measured } = judged[i].spread;
    return squaresBetween(values, of) <= (measured * measured * values.length) / 2;
  });
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
  const faults = recurrentFaults.filter((one) => one.appliesTo({ problem, chunk, gradientInputs }));
  if (workOf(toJudge) * faults.length > mostWork)
    return unexplainedCause(['the problem is too large to try faults on: give some of its heads']);
  const arithmetic = exactKernel(chunk);
  const failing = toJudge.given.filter((_, i) => !passes(judged[i])).map(({ name }) => name);
  const accepted = faults.flatMap((fault) => {
    const predicted = predict(toJudge, fault, arithmetic);
    // A fault of which nothing is known where the kernel fails explains nothing.
    if (!failing.some((name) => predicted[name] !== undefined)) return [];
    if (!isNearer(toJudge, judged, predicted)) return [];
    const known = toJudge.given.filter(({ name }) => predicted[name] !== undefined);
    const again = judgeQuantities({ ...toJudge, given: known }, measured, predicted);
    if (!again.every(passes)) return [];
    const left = known.reduce(
      (sum, { name, given: { values } }) => sum + squaresBetween(values, predicted[name] ?? values),
      0,
    );
    return [{ fault, left, known: known.length }];
  });
  const [first, ...others] = accepted.sort((a, b) => b.known - a.known || a.left - b.left);
  if (first === undefined) return unexplainedCause();
  return foundCause(
    first.fault,
    ['against what this fault gives, all passes'],
    others.map(({ fault }) => fault),
  );
}
