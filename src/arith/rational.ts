import { RequestError } from '../request-error.js';

/** An exact fraction in lowest terms; the denominator is positive. */
export interface Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** A value as integer · 2^exponent. */
export interface ScaledInteger {
  readonly integer: bigint;
  readonly exponent: number;
}

/**
 * A finite fp64 value as an integer times a power of two, exactly; the integer is at most 2^53 in
 * magnitude. Both zeros give 0 · 2^−1074. Throws a RequestError for an infinity or NaN.
 */
export function scaledIntegerOf(value: number): ScaledInteger {
  if (!Number.isFinite(value)) {
    throw new RequestError(`${value} has no exact rational value; pass a finite number`);
  }
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const word = bits.getBigUint64(0);
  const exponentField = Number((word >> 52n) & 0x7ffn);
  const fraction = word & 0xfffffffffffffn;
  const significand = exponentField === 0 ? fraction : fraction | 0x10000000000000n;
  return {
    integer: word >> 63n === 1n ? -significand : significand,
    exponent: Math.max(exponentField, 1) - 1075,
  };
}

/**
 * The exact value of a finite fp64 number as a fraction in lowest terms. Throws a RequestError for
 * an infinity or NaN.
 */
export function rationalOfFloat64(value: number): Rational {
  const { integer, exponent } = scaledIntegerOf(value);
  if (exponent >= 0) return { numerator: integer << BigInt(exponent), denominator: 1n };
  if (integer === 0n) return { numerator: 0n, denominator: 1n };
  const trailingZeros = bitLength(integer & -integer) - 1;
  const shift = BigInt(Math.min(trailingZeros, -exponent));
  return { numerator: integer >> shift, denominator: (1n << BigInt(-exponent)) >> shift };
}

/**
 * numerator / denominator rounded to fp64, to nearest even, once: overflow gives an infinity and
 * results below the normal range are rounded on the subnormal grid. A zero numerator gives +0.
 * Throws a RequestError when the denominator is zero.
 */
export function float64FromRational(numerator: bigint, denominator: bigint): number {
  if (denominator === 0n) {
    throw new RequestError('a fraction has denominator 0; pass a denominator that is not zero');
  }
  if (numerator === 0n) return 0;
  const sign = numerator < 0n !== denominator < 0n ? -1 : 1;
  const top = magnitude(numerator);
  const bottom = magnitude(denominator);
  // The quotient is in (2^(estimate−1), 2^(estimate+1)): its leading bit is at one of two places.
  const estimate = bitLength(top) - bitLength(bottom);
  if (estimate > 1025) return sign * Infinity;
  const isAtLeast =
    estimate >= 0 ? top >= bottom << BigInt(estimate) : top << BigInt(-estimate) >= bottom;
  const leadingExponent = isAtLeast ? estimate : estimate - 1;
  const ulpExponent = Math.max(leadingExponent - 52, -1074);
  const scaledTop = ulpExponent < 0 ? top << BigInt(-ulpExponent) : top;
  const scaledBottom = ulpExponent > 0 ? bottom << BigInt(ulpExponent) : bottom;
  const floor = scaledTop / scaledBottom;
  const twiceRemainder = 2n * (scaledTop - floor * scaledBottom);
  const roundsUp =
    twiceRemainder > scaledBottom || (twiceRemainder === scaledBottom && (floor & 1n) === 1n);
  return sign * Number(roundsUp ? floor + 1n : floor) * 2 ** ulpExponent;
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** Bits of |value|: 0 for 0, n for 2^(n−1) ≤ |value| < 2^n. */
export function bitLength(value: bigint): number {
  const digits = magnitude(value).toString(16);
  return value === 0n ? 0 : 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
}
