import {
  canonicalNanBits,
  infinityBits,
  oneBits,
  smallestNormalBits,
  truncateToFloat32,
} from './float32-bits.js';
import type { Interpolator } from './interpolation.js';
import { interpolate, truncatedSquare } from './interpolation.js';
import { log2Segments } from './log2-segments.js';

/** The unit of the sum is 2^-38. */
export const log2Interpolator: Interpolator = {
  c0Weight: 2 ** 12,
  c2Weight: 2,
  bias: 0x3345,
  unitsPerUlp: 2 ** 2,
  segments: log2Segments,
};
/** Fraction bits that are kept of the interpolated logarithm. */
const gridBits = 36;

/**
 * NVIDIA's `lg2.approx.ftz.f32`: about log2 x, from the bits of x to the bits of the result.
 * Subnormal inputs count as zero. ±0 gives −∞, +∞ gives +∞, a negative x or NaN gives 0x7fffffff, and
 * 1 gives +0. The logarithm is formed as a fixed-point number, exponent plus interpolated fraction,
 * a negative one is negated by one's complement, and the magnitude truncated. Equal to an H200 for
 * all 2^32 inputs.
 */
export function lg2ApproxFtz(bits: number): number {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  if (magnitude < smallestNormalBits) return 0x80000000 + infinityBits;
  if (bits >>> 31 !== 0) return canonicalNanBits;
  if (magnitude === infinityBits) return infinityBits;
  if (magnitude === oneBits) return 0;
  const exponent = (magnitude >>> 23) - 127;
  const fraction = magnitude & 0x7fffff;
  const x = fraction & 0x1ffff;
  const interpolated = interpolate(log2Interpolator, fraction >>> 17, x, truncatedSquare(x));
  const fixed = exponent * 2 ** gridBits + interpolated;
  return fixed < 0
    ? truncateToFloat32(true, -fixed - 1, -gridBits)
    : truncateToFloat32(false, fixed, -gridBits);
}
