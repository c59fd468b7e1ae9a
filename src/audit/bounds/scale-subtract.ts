import type { ExponentArithmetic } from './kernel-arithmetic.js';
import type { RowTerms, TechniqueBound, WeightError } from './technique-bound.js';

/** What the weights of a row add up to, as far as errors of their exponents go. */
export interface ExponentMoments {
  /** Σ w·z and Σ w·z², z the distance of an exponent from the maximum in use (log2, at least 0). */
  readonly first: number;
  readonly second: number;
  /** The largest magnitude of a maximum in use (log2). */
  readonly maximum: number;
}

/**
 * The error that the fp32 arithmetic of an exponent puts on the weights, beyond what is common to all
 * weights with the same maximum in use (that cancels in O). Natural units: relative to the weight.
 * Theorem 3 of docs/bounds.md.
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

/** The errors of the exponents as relative errors of the weights, but for what cancels in O. */
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

export const scaleSubtract: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = exponentWeightError(row);
    return ({ scatter }) => rootMeanSquare * scatter;
  },
  // Nothing cancels in the LSE.
  lse: (row) => exponentWeightError(row).mean - row.errors.common + row.errors.commonOfLse,
};
