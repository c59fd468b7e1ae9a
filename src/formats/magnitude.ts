import type { NumberFormat } from './format.js';

/**
 * The magnitude of a bit pattern is its exponent and fraction fields read as one integer, without
 * the sign and the padding. Magnitudes order the non-negative numbers of a format and count them
 * one by one from zero, across subnormals and binades, up to the largest finite number. All of the
 * formats but fp64 have magnitudes below 2^31.
 */

/** The magnitude of the largest finite number of a format narrower than fp64. */
export function maxFiniteMagnitude(format: NumberFormat): number {
  return firstSpecialMagnitude(format) - 1;
}

/**
 * The smallest magnitude that is no finite number: infinity's in an `ieee` format, NaN's in an `fn`
 * format.
 */
export function firstSpecialMagnitude(format: NumberFormat): number {
  const magnitudes = 2 ** (format.exponentBits + format.precision - 1);
  return format.specials === 'ieee' ? magnitudes - 2 ** (format.precision - 1) : magnitudes - 1;
}
