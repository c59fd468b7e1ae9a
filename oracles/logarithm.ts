import { scaledIntegerOf } from '../src/arith/index.js';
import { lazily } from '../src/lazily.js';
import { bitLength, ln2, naturalLogarithm, ratioToNumber, shiftBigInt } from './fixed-point.js';

/** Fraction bits: far more than fp64 keeps of any logarithm it returns. */
const bits = 80;

/** ln 2 with 12 bits more, for a power of two up to 2^1074 multiplies its error. */
const ln2Guarded = lazily(() => ln2(bits + 12));

/**
 * ln x for a finite x > 0 with a proven radius: within half an ulp of fp64 plus 2^-76 absolute. NaN
 * with radius NaN for every other x.
 */
export function naturalLogarithmOfNumber(x: number): {
  readonly value: number;
  readonly radius: number;
} {
  if (!(x > 0 && x < Infinity)) return { value: NaN, radius: NaN };
  // The row sum of a row with one weighty key.
  if (x === 1) return { value: 0, radius: 2 ** -76 };
  const { integer, exponent } = scaledIntegerOf(x);
  // x = m · 2^power with m in [1, 2), so that no precision is lost to a tiny or huge x.
  const power = bitLength(integer) - 1 + exponent;
  const mantissa = shiftBigInt(integer, exponent - power + bits);
  const value = ratioToNumber(
    naturalLogarithm(mantissa, bits) + ((BigInt(power) * ln2Guarded()) >> 12n),
    1n << BigInt(bits),
    0,
  );
  return { value, radius: 2 ** -53 * Math.abs(value) + 2 ** -76 };
}
