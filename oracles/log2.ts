import type { NumberFormat, RoundingMode } from '../src/formats/index.js';
import { roundExact, roundIrrational } from './correct-rounding.js';
import { lazily } from '../src/lazily.js';
import {
  createFloat64Log2,
  log2ToOddByDoubleDouble,
  log2ToOddByFixedPoint,
} from './log2-levels.js';

const float64Log2 = lazily(createFloat64Log2);

function log2ToOdd(x: number): number {
  return log2ToOddByDoubleDouble(x) ?? log2ToOddByFixedPoint(x);
}

/**
 * log2 x rounded once to the format, from the exact value, for every fp64 x (and so for every number
 * of the other formats, subnormals included). Default to nearest, ties to even. log2 of either zero
 * is −∞ and of ∞ is ∞ (NaN in a format without infinity), of 1 it is +0 in every mode; NaN for
 * negative numbers and NaN. A result below the format's smallest numbers rounds to a zero of its own
 * sign or to the smallest subnormal, as the mode demands.
 *
 * Exact results: for a power of two, log2 x is its exponent, rounded as such. For every other x > 0,
 * an odd a > 1 times 2^k, log2 x is irrational: were it p/q, then a^q·2^(kq) = 2^p, but a^q is odd
 * and more than 1. So no other result is a number of the format or a midpoint, and approximating
 * better and better ends.
 *
 * @throws RequestError for fp64 as format (it has no room for correct rounding here) and for an
 * unknown mode.
 */
export function log2Rounded(
  x: number,
  format: NumberFormat,
  rounding: RoundingMode = 'nearest-even',
): number {
  if (!(x > 0 && x < Infinity))
    return roundExact(x === 0 ? -Infinity : x > 0 ? Infinity : NaN, format, rounding);
  const approximation = float64Log2()(x);
  // Only the logarithm of a power of two is an integer, and only within the error around an integer
  // can x be one.
  if (Number.isInteger(approximation) && isPowerOfTwo(x, approximation))
    return roundExact(approximation, format, rounding);
  return roundIrrational(x, approximation, log2ToOdd, format, rounding);
}

function isPowerOfTwo(x: number, exponent: number): boolean {
  return x === 2 ** exponent;
}
