import { exp2ApproxFtz } from './ex2.js';
import { hiddenBit, infinityBits, packFloat32 } from './float32-bits.js';
import { tanhApprox } from './tanh.js';

// The 16-bit forms are the fp32 unit with its result truncated, not rounded, to 16 bits.

/**
 * NVIDIA's `ex2.approx.ftz.bf16`: about 2^x, from bf16 bits to bf16 bits. It is
 * {@link exp2ApproxFtz} truncated toward zero, so subnormal results flush to +0, and NaN gives
 * 0x7fff. Equal to an H200 for all 65,536 inputs.
 */
export function exp2ApproxFtzBf16(bits: number): number {
  return truncateToBf16(exp2ApproxFtz(bf16ToFloat32(bits)));
}

/**
 * NVIDIA's `ex2.approx.f16`: about 2^x, from fp16 bits to fp16 bits. It is {@link exp2ApproxFtz}
 * truncated toward zero, subnormal results kept; x ≥ 16 gives +∞, NaN gives 0x7fff. Equal to an H200
 * for all 65,536 inputs.
 */
export function exp2ApproxFp16(bits: number): number {
  return truncateToFp16(exp2ApproxFtz(fp16ToFloat32(bits)));
}

/**
 * NVIDIA's `tanh.approx.bf16`: about tanh x, from bf16 bits to bf16 bits. It is {@link tanhApprox}
 * truncated toward zero; subnormal inputs come back as they are, NaN gives 0x7fff. Equal to an H200
 * for all 65,536 inputs.
 */
export function tanhApproxBf16(bits: number): number {
  return truncateToBf16(tanhApprox(bf16ToFloat32(bits)));
}

/**
 * NVIDIA's `tanh.approx.f16`: about tanh x, from fp16 bits to fp16 bits. It is {@link tanhApprox}
 * truncated toward zero; subnormal inputs come back as they are, NaN gives 0x7fff. Equal to an H200
 * for all 65,536 inputs.
 */
export function tanhApproxFp16(bits: number): number {
  return truncateToFp16(tanhApprox(fp16ToFloat32(bits)));
}

function bf16ToFloat32(bits: number): number {
  return (bits & 0xffff) * 2 ** 16;
}

function truncateToBf16(bits: number): number {
  return bits >>> 16;
}

/** The exponent fields' biases differ by 112; fp32 has 13 more fraction bits. */
const rebias = 112 * hiddenBit;
const extraFractionBits = 13;
const fp16Infinity = 0x7c00;
const fp16Nan = 0x7fff;

function fp16ToFloat32(bits: number): number {
  const negative = (bits & 0x8000) !== 0;
  const magnitude = bits & 0x7fff;
  const sign = negative ? 0x80000000 : 0;
  if (magnitude >= fp16Infinity)
    return sign + infinityBits + ((magnitude & 0x3ff) << extraFractionBits);
  if (magnitude >= 0x0400) return sign + (magnitude << extraFractionBits) + rebias;
  if (magnitude === 0) return sign;
  // A subnormal counts units of 2^-24; its highest set bit becomes the hidden one.
  const shift = Math.clz32(magnitude) - 8;
  return packFloat32(negative, -1 - shift, magnitude << shift);
}

/** fp32 bits to fp16 bits, toward zero; from 2^16 on infinity, as the unit overflows. */
function truncateToFp16(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return fp16Nan;
  const rebiased = (magnitude - rebias) >> extraFractionBits;
  if (rebiased >= 0x0400) return sign | Math.min(rebiased, fp16Infinity);
  // Below 2^-14 the pattern counts units of 2^-24.
  const drop = 126 - (magnitude >>> 23);
  return sign | (drop < 24 ? ((magnitude & 0x7fffff) | hiddenBit) >>> drop : 0);
}
