import { bitsOfFloat32, float32Of } from '../../arith/index.js';

/** The bit pattern of fp32 +∞, and the first magnitude above every finite one. */
export const infinityBits = 0x7f800000;

/** The NaN that the unit delivers for every NaN input and invalid operand. */
export const canonicalNanBits = 0x7fffffff;

/** The bit pattern of −0. */
export const signBit = 0x80000000;

/** The bit pattern of 1. */
export const oneBits = 0x3f800000;

/** The smallest normal magnitude: everything below it is zero or subnormal. */
export const smallestNormalBits = 0x00800000;

/** 2^23, the weight of an fp32 exponent field's lowest bit and of a significand's hidden bit. */
export const hiddenBit = 0x00800000;

const exponentBias = 127;
const powersOfTwo: readonly number[] = Array.from({ length: 30 }, (_, exponent) => 2 ** exponent);

/**
 * The bit pattern, from 0 to 2^32 − 1, of ±significand·2^(exponent − 23), for a significand from
 * 2^23 to 2^24; the latter is the next power of two. Results below 2^-126 flush to a zero of the
 * same sign, those from 2^128 on become infinite.
 */
export function packFloat32(negative: boolean, exponent: number, significand: number): number {
  // The hidden bit adds one to the exponent field, and a significand of 2^24 adds two.
  const magnitude = (exponent + exponentBias - 1) * hiddenBit + significand;
  const sign = negative ? 0x80000000 : 0;
  if (magnitude < smallestNormalBits) return sign;
  return sign + Math.min(magnitude, infinityBits);
}

/**
 * The bit pattern of ±magnitude·2^unitExponent, truncated toward zero to fp32's precision.
 * `magnitude` is an integer from 1 to 2^53 − 1; range as in {@link packFloat32}.
 */
export function truncateToFloat32(
  negative: boolean,
  magnitude: number,
  unitExponent: number,
): number {
  const high = Math.floor(magnitude / 2 ** 32);
  const length = high > 0 ? 64 - Math.clz32(high) : 32 - Math.clz32(magnitude);
  const drop = length - 24;
  const significand =
    drop > 0 ? Math.floor(magnitude / powersOfTwo[drop]) : magnitude * powersOfTwo[-drop];
  return packFloat32(negative, unitExponent + length - 1, significand);
}

/** The bits of x·factor rounded to nearest even, subnormal results kept, from the bits of x; a NaN gives 0x7fffffff. */
export function scaled(bits: number, factor: number): number {
  return bitsOfFloat32(float32Of(bits) * factor);
}

/** Whether these are the bits of a subnormal number, of either sign: neither zero nor normal. */
export function isSubnormal(bits: number): boolean {
  const magnitude = bits & 0x7fffffff;
  return magnitude !== 0 && magnitude < smallestNormalBits;
}
