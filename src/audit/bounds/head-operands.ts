import { decodeTensor, smallestNormalOf } from '../../formats/index.js';
import type { Problem, ProblemShape, Tensor } from '../../problem/index.js';
import type { KernelArithmetic } from '../../../kernels/index.js';
import { scoreError, scoreUnits } from './scores.js';

/** One head of Q or K decoded, infinities and NaNs as 0, with what its scores' errors depend on. */
interface ScoreOperand {
  readonly values: Float64Array;
  /** See `scoreUnits`. */
  readonly units: Float64Array;
  readonly norms: Float64Array;
  readonly largestNorm: number;
}

function decodeFinite(tensor: Tensor, first: number, length: number): Float64Array {
  const values = decodeTensor(tensor, first, first + length);
  for (let i = 0; i < length; i++) if (!Number.isFinite(values[i])) values[i] = 0;
  return values;
}

/** Rounds up what a sum of squares and its root may be off. */
const up = 1 + 2 ** -40;

/**
 * The Euclidean norm of values[from … to), finite ones, rounded up; infinite where it is beyond the range of
 * fp64, 0 for zeros alone.
 */
export function euclideanNorm(values: Float64Array, from: number, to: number): number {
  let largest = 0;
  for (let t = from; t < to; t++) largest = Math.max(largest, Math.abs(values[t]));
  if (largest === 0) return 0;
  // Relative to the largest: squares themselves may leave the range of fp64 at either end.
  let squares = 0;
  for (let t = from; t < to; t++) squares += (values[t] / largest) ** 2;
  return largest * Math.sqrt(squares) * up;
}

function scoreOperand(
  tensor: Tensor,
  first: number,
  rows: number,
  dim: number,
  arithmetic: KernelArithmetic,
): ScoreOperand {
  const values = decodeFinite(tensor, first * dim, rows * dim);
  const { scores } = arithmetic;
  const smallest = Math.max(
    smallestNormalOf(tensor),
    scores.kind === 'any-order' ? scores.smallestOperand : 0,
  );
  const units = scoreUnits(scoreError(arithmetic.scores, dim), values, rows, dim, smallest);
  const norms = new Float64Array(rows);
  for (let i = 0; i < rows; i++) norms[i] = euclideanNorm(values, i * dim, (i + 1) * dim);
  return {
    values,
    units,
    norms,
    largestNorm: norms.reduce((most, norm) => Math.max(most, norm), 0),
  };
}

/** Squares of larger values, and sums of them, may leave the range of fp64. */
const hugeValue = 2 ** 400;

/** The operands of one query head. */
export interface HeadOperands {
  /** Counted over [batch, heads]. */
  readonly head: number;
  readonly query: ScoreOperand;
  readonly key: ScoreOperand;
  /** [keys × vDim], infinities and NaNs as 0, times `valueScale`. */
  readonly value: Float64Array;
  /** A power of two that keeps the squares of values within fp64; 1 unless they are huge. */
  readonly valueScale: number;
  /** The largest magnitude of V, in all and by column, not scaled. */
  readonly largestValue: number;
  readonly columnLargest: Float64Array;
}

/** The operands head by head; K and V are decoded once for the query heads that share them. */
export function* headOperands(
  problem: Problem,
  shape: ProblemShape,
  arithmetic: KernelArithmetic,
): Generator<HeadOperands> {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  let known = -1;
  let shared:
    | Pick<HeadOperands, 'key' | 'value' | 'valueScale' | 'largestValue' | 'columnLargest'>
    | undefined;
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    if (kv !== known || shared === undefined) {
      known = kv;
      const value = decodeFinite(problem.v, kv * keys * vDim, keys * vDim);
      const columnLargest = new Float64Array(vDim);
      value.forEach((x, i) => {
        columnLargest[i % vDim] = Math.max(columnLargest[i % vDim], Math.abs(x));
      });
      const largestValue = columnLargest.reduce((most, x) => Math.max(most, x), 0);
      const key = scoreOperand(problem.k, kv * keys, keys, qkDim, arithmetic);
      const valueScale = largestValue > hugeValue ? 1 / hugeValue ** 2 : 1;
      if (valueScale !== 1) for (let i = 0; i < value.length; i++) value[i] *= valueScale;
      shared = { key, value, valueScale, largestValue, columnLargest };
    }
    const query = scoreOperand(problem.q, head * queries, queries, qkDim, arithmetic);
    yield { head, query, ...shared };
  }
}
