/**
 * The fp32 bit patterns in ascending order, as ordinals from 0 to 2^32 − 1: NaNs with the sign bit,
 * −∞, the negative numbers, −0, +0, the positive numbers, +∞, NaNs. Neighbours in value are
 * neighbours in ordinal, so that a range of numbers is a range of ordinals.
 */
export type Ordinal = number;

/** Number of ordinals, and of bit patterns. */
export const ordinalCount = 2 ** 32;

const signBit = 2 ** 31;

/** The ordinal of an fp32 bit pattern from 0 to 2^32 − 1. */
export function ordinalOfBits(bits: number): Ordinal {
  return bits < signBit ? bits + signBit : ordinalCount - 1 - bits;
}

/** The bit pattern, from 0 to 2^32 − 1, with that ordinal. */
export function bitsOfOrdinal(ordinal: Ordinal): number {
  return ordinal >= signBit ? ordinal - signBit : ordinalCount - 1 - ordinal;
}

/** The ordinal of an fp32 number; NaN has that of the positive quiet NaN, and other numbers are rounded. */
export function ordinalOfValue(value: number): Ordinal {
  return ordinalOfBits(new Uint32Array(Float32Array.of(value).buffer)[0]);
}

/** The fp32 number with that ordinal. */
export function valueOfOrdinal(ordinal: Ordinal): number {
  return valueOfBits(bitsOfOrdinal(ordinal));
}

/** The fp32 number with that bit pattern. */
export function valueOfBits(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0];
}

/** The exponent of fp32's smallest subnormal number. */
export const smallestSpacingExponent = -149;

/**
 * log2 of the ulp of the number with that ordinal: −149 for zeros and subnormal numbers, 104 in the
 * topmost binade and, by convention, for infinities and NaNs.
 */
export function spacingExponentOf(ordinal: Ordinal): number {
  const field = Math.floor(bitsOfOrdinal(ordinal) / 2 ** 23) % 256;
  return smallestSpacingExponent + Math.min(Math.max(field, 1), 254) - 1;
}
