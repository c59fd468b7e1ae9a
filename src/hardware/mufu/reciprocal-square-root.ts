import {
  canonicalNanBits,
  hiddenBit,
  infinityBits,
  packFloat32,
  smallestNormalBits,
} from './float32-bits.js';
import type { Interpolator } from './interpolation.js';
import { interpolate, truncatedSquare } from './interpolation.js';
import { reciprocalSquareRootSegments } from './reciprocal-square-root-segments.js';

/** The unit of the sum is 2^-40 relative to 1/2 ≤ 1/√significand ≤ 1; the table covers [1, 4). */
export const reciprocalSquareRootInterpolator: Interpolator = {
  c0Weight: 2 ** 14,
  c2Weight: 4,
  bias: 0x7fff,
  unitsPerUlp: 2 ** 16,
  segments: reciprocalSquareRootSegments,
};

/**
 * NVIDIA's `rsqrt.approx.ftz.f32`: about 1/√x, from the bits of x to the bits of the result.
 * Subnormal inputs count as zeros of their sign. ±0 gives ±∞, +∞ gives +0, a negative x or NaN gives
 * 0x7fffffff, and powers of four are exact. Equal to an H200 for all 2^32 inputs.
 */
export function rsqrtApproxFtz(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  if (magnitude < smallestNormalBits) return (negative ? 0x80000000 : 0) + infinityBits;
  if (negative) return canonicalNanBits;
  if (magnitude === infinityBits) return 0;
  const exponent = (magnitude >>> 23) - 127;
  const halfExponent = exponent >> 1;
  const position = ((exponent & 1) << 23) | (magnitude & 0x7fffff);
  // The table's sum at 1 would come out one ulp too small.
  if (position === 0) return packFloat32(false, -halfExponent, hiddenBit);
  const x = position & 0x1ffff;
  const interpolated = interpolate(
    reciprocalSquareRootInterpolator,
    position >>> 17,
    x,
    truncatedSquare(x),
  );
  return packFloat32(false, -halfExponent - 1, interpolated);
}
