import { exponentOf, powerOfTwo } from './binary64.js';
import { type NumberFormat, smallestNormal, smallestSubnormal } from './format.js';
import { RequestError } from '../request-error.js';
import { round } from './round.js';

/**
 * The unit in the last place at x: the spacing of the format's numbers in the binade of |x|,
 * 2^(e - p + 1) with e = ⌊log2|x|⌋ brought between the format's smallest and largest exponent. So
 * it is the smallest subnormal at zero and throughout the subnormals, and beyond the largest finite
 * number it stays that of the top binade. x need not be representable in the format. NaN at
 * ±Infinity and NaN.
 */
export function ulp(format: NumberFormat, x: number): number {
  if (!Number.isFinite(x)) return NaN;
  const { precision, minExponent, maxExponent } = format;
  const exponent = Math.min(Math.max(exponentOf(x), minExponent), maxExponent);
  return powerOfTwo(exponent - precision + 1);
}

/**
 * The least number of the format that compares greater than x (nextUp of IEEE 754-2019 section
 * 5.3.1): the smallest subnormal at ±0, −0 at the negative smallest subnormal, Infinity at the
 * largest finite number and at Infinity, NaN at NaN. An `fn` format has no infinity, so there the
 * largest finite number is followed by NaN. Throws a RequestError for an x the format does not hold.
 */
export function nextUp(format: NumberFormat, x: number): number {
  if (Number.isNaN(x)) return NaN;
  checkRepresentable(format, x);
  if (x === Infinity) return Infinity;
  if (x === -Infinity) return -format.maxFinite;
  if (x === format.maxFinite) return format.specials === 'ieee' ? Infinity : NaN;
  if (x === 0) return smallestSubnormal(format);
  return x > 0 ? x + ulp(format, x) : -(-x - spacingBelow(format, -x));
}

/** The greatest number of the format that compares less than x: −nextUp(−x). */
export function nextDown(format: NumberFormat, x: number): number {
  return -nextUp(format, -x);
}

/** The distance from a positive number of the format to the one below: half an ulp at a power of two. */
function spacingBelow(format: NumberFormat, x: number): number {
  const startsBinade = x > smallestNormal(format) && x === powerOfTwo(exponentOf(x));
  return startsBinade ? ulp(format, x) / 2 : ulp(format, x);
}

function checkRepresentable(format: NumberFormat, x: number): void {
  const nearest = round(format, x);
  if (nearest !== x) {
    throw new RequestError(
      `${x} is no ${format.name} number, so it has no neighbours in the format; round it first (to nearest: ${nearest})`,
    );
  }
}
