import { exponentOf, powerOfTwo } from './binary64.js';
import type { NumberFormat } from './format.js';

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
