import { powerOfTwo } from './binary64.js';
import type { NumberFormat } from './format.js';

/** The unit roundoff u = 2^-p: the largest relative error of one rounding to nearest, without underflow. */
export function unitRoundoff(format: NumberFormat): number {
  return powerOfTwo(-format.precision);
}

/** The smallest positive number of the format, the spacing of its subnormals. */
export function smallestSubnormal(format: NumberFormat): number {
  return powerOfTwo(format.minExponent - format.precision + 1);
}

/** The smallest positive number of the format with a full significand, 2^minExponent. */
export function smallestNormal(format: NumberFormat): number {
  return powerOfTwo(format.minExponent);
}
