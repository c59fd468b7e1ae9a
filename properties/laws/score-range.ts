import { factorsError } from '../../src/audit/index.js';
import { decodeTensor, formats, unitRoundoff } from '../../src/formats/index.js';
import {
  countKeys,
  keysOf,
  problemMask,
  problemShape,
  scoreLaw,
  scoreOf,
  type Problem,
  type Tensor,
} from '../../src/problem/index.js';
import type { ProblemPromises } from './kernel-under-test.js';
import type { KernelRun } from './law.js';
import { admittedArithmetic } from './within-bound.js';

/** The scores of one row, scaled and capped, in natural-log units. */
export interface ScoreRange {
  /** The largest one, to `lseError` and better. */
  readonly largest: number;
  /** Keys that the row sees, one at least. */
  readonly keys: number;
  /** The largest error of any correct kernel's LSE before it is stored. */
  readonly lseError: number;
}

/** Decoded rows of the last dimension of a tensor, and their Euclidean norms, rounded up. */
export function decodedRows(tensor: Tensor) {
  const dim = tensor.shape.at(-1)!;
  const values = decodeTensor(tensor);
  const norms = new Float64Array(values.length / dim);
  for (let row = 0; row < norms.length; row++) {
    let sum = 0;
    for (let t = row * dim; t < (row + 1) * dim; t++) sum += values[t] ** 2;
    norms[row] = Math.sqrt(sum) * (1 + 2 ** -40);
  }
  return { values, norms };
}

/** The largest magnitude that biases and ALiBi add to a score of a problem; 0 for one without. */
export function largestAddend(problem: Problem): number {
  const { bias, alibiSlopes } = problem;
  const largest = (tensor: Tensor | undefined) =>
    tensor === undefined
      ? 0
      : decodeTensor(tensor)
          .filter(Number.isFinite)
          .reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const { queries, keys } = problemShape(problem);
  return largest(bias) + largest(alibiSlopes) * (queries + keys);
}

/** The first row of the kv head that row `row` over [batch, heads, queries] reads. */
export function firstKeyRow(
  { heads, kvHeads, groupSize, queries, keys }: KernelRun['shape'],
  row: number,
): number {
  const head = Math.floor(row / queries);
  return (Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize)) * keys;
}

/**
 * The range of each row's scores over [batch, heads, queries]; null for a row without keys, with an
 * infinity or a NaN in its query or its visible keys, or with products or a sum that may leave the range of the
 * kernel.
 *
 * The error of the LSE is that of `admittedArithmetic`: with A = |scale|·‖q‖·max‖k‖ ≥ |score|, d the
 * head dimension, n the keys, a the error of a product in a sum and r that of an elementwise
 * operation: (d·a + r)·A of the scores, and of a softcap its own relative error of the capped score;
 * the exponential's relative error; n·a of the sum; the logarithm; r of each of the operations
 * that put the LSE together, seven in all. A relative error x of
 * the sum moves its logarithm by at most −ln(1 − x). The score's own roundings in fp64, (d + 8)·2^-52·A,
 * are added.
 */
export function scoreRanges(
  { problem, outputs, shape }: KernelRun,
  promises: Pick<ProblemPromises, 'premises'>,
): (ScoreRange | null)[] {
  const arithmetic = admittedArithmetic({ problem, outputs }, promises);
  const { scores, exponent, exponential, finish } = arithmetic;
  if (scores.kind !== 'any-order') throw new TypeError('sums in any order');
  const { rowSumAddition, rowSumRounded, maximum, weightFormat } = arithmetic;
  const { ofOperands } = scores;
  const ofDots = Math.expm1(shape.qkDim * scores.perProduct);
  const least = Math.sqrt(shape.qkDim) * scores.smallestOperand;
  const ofWeights = rowSumRounded ? unitRoundoff(formats[weightFormat]) : 0;
  const factors = maximum.kind === 'unknown' ? maximum.factors : null;
  const { scale, softcap } = problem;
  const { qkDim, queries } = shape;
  const q = decodedRows(problem.q);
  const k = decodedRows(problem.k);
  const mask = problemMask(problem, shape);
  const law = scoreLaw(problem);

  function rangeOf(row: number): ScoreRange | null {
    const head = Math.floor(row / queries);
    const query = row % queries;
    const ranges = mask.ranges(head, query);
    const first = firstKeyRow(shape, row);
    let largest = -Infinity;
    let longest = 0;
    for (const key of keysOf(ranges)) {
      const at = (first + key) * qkDim;
      let dot = 0;
      for (let t = 0; t < qkDim; t++) dot += q.values[row * qkDim + t] * k.values[at + t];
      largest = Math.max(largest, scoreOf(law, dot, head, query, key));
      longest = Math.max(longest, k.norms[first + key]);
    }
    const product = q.norms[row] * longest;
    const size = Math.abs(scale) * product;
    const reach = Math.max(product, size * Math.LOG2E);
    if (ranges.length === 0 || !(reach < arithmetic.largestScore)) return null;
    const keys = countKeys(ranges);
    const capped = softcap === null ? size : Math.min(size, softcap);
    const ofScores =
      (ofDots + exponent.ofScore + 2 * exponent.ofDistance + (qkDim + 8) * 2 ** -52) * size +
      ofOperands * Math.abs(scale) * (q.norms[row] + least) * (longest + least) +
      exponent.absolute * Math.LN2 +
      (exponent.ofSoftcap + 2 ** -50) * (softcap === null ? 0 : capped);
    const ofFactors = factorsError(factors, keys);
    const ofSum = Math.min(
      1,
      exponential.hardware + (keys + 2) * rowSumAddition + ofWeights + ofFactors,
    );
    const lse = Math.abs(largest) + Math.log(keys) + ofScores;
    const lseError =
      (ofScores -
        Math.log1p(-ofSum) +
        finish.logarithm +
        finish.elementwise * (2 * capped + 5 * lse)) *
      (1 + 2 ** -6);
    // Where the sum may be anything nothing is known of its logarithm.
    return lseError === Infinity ? null : { largest, keys, lseError };
  }

  const rows = shape.batch * shape.heads * queries;
  return Array.from({ length: rows }, (_, row) => rangeOf(row));
}
