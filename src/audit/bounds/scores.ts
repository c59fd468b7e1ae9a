import type { RowTerms, TechniqueBound, WeightError } from './technique-bound.js';
import { type ExponentArithmetic, roundoff32, type SumArithmetic } from '../../../kernels/index.js';
import type { RowMeasures } from '../../formats/index.js';
import { euclideanNorm, isWithinRange, normOfSquares } from './key-extents.js';
import { chainLoss, fusedSumLoss } from './sums.js';

// The errors of scores: `qk-accumulate` and `scale-subtract`, sections 2 and 3 of docs/theory/bounds.md.

/**
 * The largest error of the score of a query and a key: perPartial·Σ |partial sums| + perUnit·Σ_t q_t·k_t,
 * with t over the steps of the chain and units q_t, k_t of both operands that `scoreUnits` gives. Raw score
 * units. Theorem 2 of docs/theory/bounds.md.
 */
export interface ScoreError {
  /** Dimensions per partial sum; 0 where partial sums do not matter. */
  readonly step: number;
  readonly perPartial: number;
  readonly perUnit: number;
  /** Units per row. */
  readonly units: number;
}

/** The error of scores over `dim` dimensions. */
export function scoreError(arithmetic: SumArithmetic, dim: number): ScoreError {
  // Partial sums are off themselves, by at most what the whole chain can lose.
  const own = 1 / (1 - Math.min(chainLoss(arithmetic, dim), 0.5));
  switch (arithmetic.kind) {
    case 'fused': {
      const { productsPerSum, alignedFractionBits } = arithmetic;
      return {
        step: productsPerSum,
        perPartial: fusedSumLoss(arithmetic) * own,
        perUnit: (productsPerSum + 1) * 2 ** -alignedFractionBits * own,
        units: Math.ceil(dim / productsPerSum),
      };
    }
    case 'sequential':
      return { step: 1, perPartial: roundoff32 * own, perUnit: roundoff32 * own, units: dim };
    case 'any-order':
      return {
        step: 0,
        perPartial: 0,
        perUnit: chainLoss(arithmetic, dim) * (1 + arithmetic.ofOperands) + arithmetic.ofOperands,
        units: 1,
      };
  }
}

/** Some rows of Q or K, [rows × dim], with their measures where these are known. */
export interface UnitRows {
  readonly values: Float64Array;
  readonly rows: number;
  readonly dim: number;
  readonly measures: RowMeasures | null;
}

/**
 * Units that the errors of products are relative to, [rows × units]: the largest magnitude among the dimensions of a
 * step, or the norm of all.
 *
 * @param smallestNormal of the format, or of each element where they are scaled: a subnormal's exponent counts as its
 */
export function scoreUnits(
  { step, units }: ScoreError,
  { values, rows, dim, measures }: UnitRows,
  smallestNormal: number | Float64Array,
): Float64Array {
  const sizeAt = (at: number) => {
    const x = Math.abs(values[at]);
    const least = typeof smallestNormal === 'number' ? smallestNormal : smallestNormal[at];
    return x === 0 ? 0 : Math.max(x, least);
  };
  const result = new Float64Array(rows * units);
  if (step === 0) {
    const sizes = new Float64Array(dim);
    for (let row = 0; row < rows; row++) {
      const known = normOfMeasures(measures, row, smallestNormal);
      if (known === null) for (let t = 0; t < dim; t++) sizes[t] = sizeAt(row * dim + t);
      result[row] = known ?? euclideanNorm(sizes, 0, dim);
    }
    return result;
  }
  for (let row = 0, unit = 0; row < rows; row++)
    for (let from = row * dim; from < (row + 1) * dim; from += step, unit++) {
      const to = Math.min(from + step, (row + 1) * dim);
      for (let at = from; at < to; at++) result[unit] = Math.max(result[unit], sizeAt(at));
    }
  return result;
}

/** The norm of a row whose measures say that each element counts as what it is; else null. */
function normOfMeasures(
  measures: RowMeasures | null,
  row: number,
  smallestNormal: number | Float64Array,
): number | null {
  if (measures === null || typeof smallestNormal !== 'number') return null;
  const squares = measures.squares[row];
  const isPlain = measures.smallest[row] >= smallestNormal && isWithinRange(squares);
  return isPlain ? normOfSquares(squares) : null;
}

/**
 * The ratio of a typical error of a score to the largest one: √dim roundings instead of dim, unless operands
 * are what is rounded.
 */
export function typicalScoreShare(arithmetic: SumArithmetic, dim: number): number {
  return arithmetic.kind === 'any-order' && arithmetic.ofOperands === 0
    ? 1 / Math.sqrt(Math.max(dim, 1))
    : 1;
}

/** The errors of the scores as relative errors of the weights. */
export function scoreWeightError({ errors }: RowTerms): WeightError {
  return { mean: errors.scores, rootMeanSquare: Math.sqrt(errors.scoresSquared) };
}

/** `qk-accumulate`: the sums of q·k. Theorem 2. */
export const qkAccumulateBound: TechniqueBound = {
  elements: (row) => ({ scatter: scoreWeightError(row).rootMeanSquare }),
  lse: (row) => scoreWeightError(row).mean,
};

/** Moments of a row's weights that errors of the exponents depend on. */
interface ExponentMoments {
  /** Σ w·z and Σ w·z², z the distance of an exponent from the maximum in use (log2, at least 0). */
  readonly first: number;
  readonly second: number;
  /** The largest magnitude of a maximum in use (log2). */
  readonly maximum: number;
}

/**
 * The error that the fp32 arithmetic of an exponent puts on the weights, beyond the part that is common to
 * all weights with the same maximum in use (which cancels in O). Natural units: relative to the weight.
 * Theorem 3 of docs/theory/bounds.md.
 */
export function exponentError(
  { ofDistance, ofScore, ofSoftcap, absolute }: ExponentArithmetic,
  { first, second, maximum }: ExponentMoments,
): WeightError {
  const perDistance = ofDistance + ofScore + ofSoftcap;
  const fixed = (ofScore + ofSoftcap) * maximum + absolute;
  return {
    mean: Math.LN2 * (perDistance * first + fixed),
    rootMeanSquare: Math.LN2 * (perDistance * Math.sqrt(second) + fixed),
  };
}

/** The error common to all weights whose exponents are taken relative to `maximum` (log2 units). */
export function commonExponentError(
  { common }: ExponentArithmetic,
  maximum: number,
  offset: number,
): number {
  if (maximum === 0 && offset === 0) return 0;
  // The product m·c rounds once, and offset − m·c once more where there is an offset.
  return offset === 0 ? common * maximum : common * (2 * maximum + Math.abs(offset));
}

/** The most that an exponent can be off, for weights down to 2^-126 of the maximum in use. */
export function largestExponentError(
  { ofDistance, ofScore, ofSoftcap, absolute }: ExponentArithmetic,
  maximum: number,
): number {
  return 128 * ofDistance + (ofScore + ofSoftcap) * (maximum + 128) + absolute;
}

/** The errors of the exponents as relative errors of the weights, without the part that cancels in O. */
export function exponentWeightError({ arithmetic, errors, largestMaximum }: RowTerms): WeightError {
  const own = exponentError(arithmetic.exponent, {
    first: errors.distance,
    second: errors.distanceSquared,
    maximum: largestMaximum,
  });
  return {
    mean: own.mean + errors.common,
    rootMeanSquare: own.rootMeanSquare + Math.sqrt(errors.commonSquared),
  };
}

/** `scale-subtract`: scores to exponents, the maximum subtracted. Theorem 3. */
export const scaleSubtractBound: TechniqueBound = {
  elements: (row) => ({ scatter: exponentWeightError(row).rootMeanSquare }),
  // Nothing cancels in the LSE.
  lse: (row) => exponentWeightError(row).mean - row.errors.common + row.errors.commonOfLse,
};
