import { canonicalNanBits, infinityBits, packFloat32, smallestNormalBits } from './float32-bits.js';
import type { Interpolator } from './interpolation.js';
import { interpolate, truncatedSquare } from './interpolation.js';
import { reciprocalSegments } from './reciprocal-segments.js';

/** The unit of the sum is 2^-39 relative to 1/2 ≤ 1/significand ≤ 1. */
export const reciprocalInterpolator: Interpolator = {
  c0Weight: 2 ** 13,
  c2Weight: 1,
  bias: 0x47e7,
  unitsPerUlp: 2 ** 15,
  segments: reciprocalSegments,
};

/**
 * NVIDIA's `rcp.approx.ftz.f32`: about 1/x, from the bits of x to the bits of the result. Subnormal
 * inputs count as zeros of their sign, subnormal results flush to them. ±0 gives ±∞, ±∞ gives ±0,
 * NaN gives 0x7fffffff. Equal to an H200 for all 2^32 inputs.
 */
export function rcpApproxFtz(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  const sign = negative ? 0x80000000 : 0;
  if (magnitude > infinityBits) return canonicalNanBits;
  if (magnitude === infinityBits) return sign;
  if (magnitude < smallestNormalBits) return sign + infinityBits;
  const exponent = (magnitude >>> 23) - 127;
  const fraction = magnitude & 0x7fffff;
  const x = fraction & 0xffff;
  // The squarer takes 17 bits, one more than a segment of this table holds.
  const interpolated = interpolate(
    reciprocalInterpolator,
    fraction >>> 16,
    x,
    truncatedSquare(x << 1),
  );
  return packFloat32(negative, -exponent - 1, interpolated);
}
