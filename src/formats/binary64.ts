/**
 * The bits of an fp64 number, the type in which values travel. The scratch words below are written
 * and read back within one call, so they hold no state between calls.
 */
const value64 = new Float64Array(1);
const words = new Uint32Array(value64.buffer);
const pattern64 = new BigUint64Array(value64.buffer);

value64[0] = 1;
/** Index of the word of an fp64 number that holds the sign and exponent on this machine (1 if little-endian). */
export const highWordIndex = words[0] === 0 ? 1 : 0;
/** The other word. */
export const lowWordIndex = 1 - highWordIndex;

/**
 * ⌊log2|x|⌋, exact for every fp64 number, subnormals included; −Infinity at 0, Infinity at ±Infinity
 * and NaN at NaN.
 */
export function exponentOf(x: number): number {
  value64[0] = x;
  const field = (words[highWordIndex] >>> 20) & 0x7ff;
  if (field === 0) return x === 0 ? -Infinity : exponentOf(x * 2 ** 54) - 54;
  if (field === 0x7ff) return Number.isNaN(x) ? NaN : Infinity;
  return field - 1023;
}

/**
 * 2^exponent for an integer exponent, exact, subnormals included; 0 below −1074 and Infinity above
 * 1023. (ECMAScript lets `2 ** exponent` be approximate.)
 */
export function powerOfTwo(exponent: number): number {
  if (exponent > 1023) return Infinity;
  if (exponent < -1074) return 0;
  words[lowWordIndex] = 0;
  words[highWordIndex] = 0;
  if (exponent >= -1022) words[highWordIndex] = (exponent + 1023) << 20;
  else if (exponent >= -1042) words[highWordIndex] = 1 << (exponent + 1042);
  else words[lowWordIndex] = 1 << (exponent + 1074);
  return value64[0];
}

/** The fp64 number with this bit pattern. */
export function fromPattern64(pattern: bigint): number {
  pattern64[0] = pattern;
  return value64[0];
}

/** The bit pattern of an fp64 number; which one is unspecified for NaN. */
export function toPattern64(x: number): bigint {
  value64[0] = x;
  return pattern64[0];
}
