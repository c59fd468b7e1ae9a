import { canonicalNanBits, infinityBits, oneBits, truncateToFloat32 } from './float32-bits.js';
import { interpolate, truncatedSquare } from './interpolation.js';
import { tanhBinades, tanhFirstExponent } from './tanh-binades.js';

/**
 * NVIDIA's `tanh.approx.f32`: about tanh x, from the bits of x to the bits of the result, with the
 * sign of x. Below 2^-8 the result is x itself, subnormal numbers included; from 8 on it is ±1. In
 * between, every binade has its own segments, of which the leading 17 bits of x below the segment
 * index count, and the sum is truncated toward zero. NaN gives 0x7fffffff. Equal to an H200 for all
 * 2^32 inputs.
 */
export function tanhApprox(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  const exponent = (magnitude >>> 23) - 127;
  if (exponent < tanhFirstExponent) return bits >>> 0;
  const binade = exponent - tanhFirstExponent;
  if (binade >= tanhBinades.length) return (negative ? 0x80000000 : 0) + oneBits;
  const { indexBits, unitExponent, interpolator } = tanhBinades[binade];
  const fraction = magnitude & 0x7fffff;
  const x = (fraction >>> (6 - indexBits)) & 0x1ffff;
  const sum = interpolate(interpolator, fraction >>> (23 - indexBits), x, truncatedSquare(x));
  return truncateToFloat32(negative, sum, unitExponent);
}
