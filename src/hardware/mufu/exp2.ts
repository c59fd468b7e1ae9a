import { exp2Segments } from './exp2-segments.js';
import { canonicalNanBits, hiddenBit, infinityBits, oneBits, packFloat32 } from './float32-bits.js';
import type { Interpolator } from './interpolation.js';
import { interpolate, truncatedSquare } from './interpolation.js';

/** The unit of the sum is 2^-38 relative to 1 ≤ 2^fraction ≤ 2. */
export const exp2Interpolator: Interpolator = {
  c0Weight: 2 ** 13,
  c2Weight: 1,
  bias: 0x77e2,
  unitsPerUlp: 2 ** 15,
  segments: exp2Segments,
};

/**
 * NVIDIA's `ex2.approx.ftz.f32`: about 2^x, from the bits of x to the bits of the result. Subnormal
 * results flush to +0. x is first cut to 23 fraction bits toward zero, and the fraction of a
 * negative x is negated by one's complement, so that the error reaches 1.4 ulp for x > 0 and 2 ulp
 * for x < 0. x ≥ 128 gives +∞, x ≤ −127 gives +0, NaN gives 0x7fffffff. Equal to an H200 for all
 * 2^32 inputs.
 */
export function exp2ApproxFtz(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  const exponent = (magnitude >>> 23) - 127;
  if (exponent >= 7) return negative ? 0 : infinityBits;
  if (exponent < -23) return oneBits;
  const significand = (magnitude & 0x7fffff) | hiddenBit;
  const fixed = exponent >= 0 ? significand << exponent : significand >>> -exponent;
  let integer = fixed >>> 23;
  let fraction = fixed & 0x7fffff;
  if (negative) {
    integer = fraction === 0 ? -integer : ~integer;
    if (fraction !== 0) fraction ^= 0x7fffff;
  }
  const x = fraction & 0x1ffff;
  const interpolated = interpolate(exp2Interpolator, fraction >>> 17, x, truncatedSquare(x));
  return packFloat32(false, integer, interpolated);
}

const minus126Bits = 0xc2fc0000;
const minusInfinityBits = 0xff800000;

/**
 * NVIDIA's `ex2.approx.f32`: as {@link exp2ApproxFtz}, but with subnormal results. The unit itself
 * has none: for x < −126 ptxas halves x before the unit and squares what comes out, rounded to
 * nearest even. Equal to an H200 for all 2^32 inputs.
 */
export function exp2Approx(bits: number): number {
  const pattern = bits >>> 0;
  if (pattern <= minus126Bits || pattern >= minusInfinityBits) return exp2ApproxFtz(pattern);
  // Halving a number of this size takes one from its exponent field.
  return squareTinyFloat32(exp2ApproxFtz(pattern - hiddenBit));
}

/** The bits of r² rounded to nearest even, subnormal results kept, for the bits of 0 ≤ r ≤ 2^-63. */
function squareTinyFloat32(bits: number): number {
  if (bits === 0) return 0;
  const significand = (bits & 0x7fffff) | hiddenBit;
  const exponent = (bits >>> 23) - 150;
  // Up to 2^-126 the bit pattern counts the units of 2^-149.
  return roundToEven(significand * significand * 2 ** (2 * exponent + 149));
}

/** A number from 0 to 2^52 rounded to an integer, ties to even. */
function roundToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}
