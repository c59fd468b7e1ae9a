import type { NumberFormat, RoundingMode } from '../src/formats/index.js';
import { roundExact, roundIrrational } from './correct-rounding.js';
import {
  createFloat64Exp2,
  exp2ToOddByDoubleDouble,
  exp2ToOddByFixedPoint,
} from './exp2-levels.js';
import { lazily } from '../src/lazily.js';

const float64Exp2 = lazily(createFloat64Exp2);

function exp2ToOdd(x: number): number {
  return exp2ToOddByDoubleDouble(x) ?? exp2ToOddByFixedPoint(x);
}

/**
 * 2^x rounded once to the format, from the exact value, for every fp64 x (and so for every number of
 * the other formats). Default to nearest, ties to even. Subnormal results are kept. 2^∞ is ∞ (NaN
 * in a format without infinity), 2^-∞ is +0, 2^NaN is NaN; overflow gives infinity or the largest
 * finite value as IEEE 754 has it for the mode, and underflow 0 or the smallest subnormal.
 *
 * Exact results: for an integer x, 2^x is a power of two, rounded as such. For every other x = a/2^k
 * (a odd, k ≥ 1) 2^x is irrational: were it p/q, then p^(2^k) = 2^a·q^(2^k), and the number of
 * factors 2 on the two sides would differ modulo 2^k. So no other result is a number of the format
 * or a midpoint, and approximating better and better ends.
 *
 * @throws RequestError for fp64 as format (it has no room for correct rounding here) and for an
 * unknown mode.
 */
export function exp2Rounded(
  x: number,
  format: NumberFormat,
  rounding: RoundingMode = 'nearest-even',
): number {
  const { maxExponent, minExponent, precision } = format;
  if (x < maxExponent + 1 && x > minExponent - precision - 1) {
    if (Math.abs(x) > 2 ** (-precision - 2)) {
      if (x !== Math.floor(x))
        return roundIrrational(x, float64Exp2()(x), exp2ToOdd, format, rounding);
      return roundExact(2 ** x, format, rounding);
    }
    // |2^x − 1| < |x|: strictly between 1 and the next place where rounding changes.
    if (x !== 0) return roundExact(x > 0 ? 1 + 2 ** -52 : 1 - 2 ** -53, format, rounding);
    return roundExact(1, format, rounding);
  }
  if (x === -Infinity) return roundExact(0, format, rounding);
  // All positive values below half the smallest subnormal round alike, and so do all finite ones
  // from twice the topmost binade on.
  if (x < 0) return roundExact(2 ** (minExponent - precision - 1), format, rounding);
  return roundExact(x < Infinity ? 2 ** (maxExponent + 1) : x, format, rounding);
}
