import { doubleDouble, float64FromRational, scaledIntegerOf } from '../src/arith/index.js';
import { fixedPointToOdd, roundToOdd, withGrowingPrecision } from './correct-rounding.js';
import { doubleDoubleExp2, doubleDoubleExp2Error } from './double-double-exp2.js';
import { createExp2, ln2, shiftBigInt } from './fixed-point.js';

/** Fractions of an octave in the fp64 table. */
const steps = 64;
/** Adding and subtracting this rounds to the nearest integer, for magnitudes below 2^51. */
const toInteger = 1.5 * 2 ** 52;
const { MIN_VALUE: smallest } = Number;

/**
 * A function for 2^x in fp64 with relative error below 3u, u = 2^-53, where 2^x is a normal number.
 *
 * x = k/64 + r, |r| ≤ 1/128, both parts exact; 2^x = T·(1 + q)·2^⌊k/64⌋ with T = 2^((k mod 64)/64)
 * from a table and q = 2^r − 1 by Taylor's polynomial of degree 5. Errors: the table u; the series
 * cut at (r ln 2)^6/720 < 0.33u; q, at most 0.0055, by 4u of itself; its product with T another u of
 * that; the sum T + T·q u. Together below 2.4u of a number that is at least 0.994 T.
 */
export function createFloat64Exp2(): (x: number) => number {
  const bits = 160;
  const one = 1n << BigInt(bits);
  const exp2 = createExp2(bits);
  const table = Float64Array.from({ length: steps }, (_, i) =>
    float64FromRational(exp2((BigInt(i) << BigInt(bits)) / BigInt(steps)), one),
  );
  const logarithm = ln2(bits);
  const coefficient = (k: number, factorial: bigint): number =>
    float64FromRational(logarithm ** BigInt(k), factorial << BigInt(k * bits));
  const c1 = coefficient(1, 1n);
  const c2 = coefficient(2, 2n);
  const c3 = coefficient(3, 6n);
  const c4 = coefficient(4, 24n);
  const c5 = coefficient(5, 120n);
  // powers[n + 1074] = 2^n
  const powers = new Float64Array(1074 + 1024);
  for (let i = 0, power = smallest; i < powers.length; i++, power *= 2) powers[i] = power;
  return (x) => {
    const k = x * steps + toInteger - toInteger;
    const r = x - k / steps;
    const q = r * (c1 + r * (c2 + r * (c3 + r * (c4 + r * c5))));
    const t = table[k & (steps - 1)];
    return (t + t * q) * powers[(k >> 6) + 1074];
  };
}

/**
 * 2^x rounded to odd in fp64 by double-double arithmetic, for an x that is no integer; undefined
 * when its error, 2^-100 of the result, cannot tell.
 */
export function exp2ToOddByDoubleDouble(x: number): number | undefined {
  const { fraction, exponent } = doubleDoubleExp2(doubleDouble(x));
  // The error is relative to the exact result, which is within a factor 1 + 2^-52 of the high word.
  const error = 2 * doubleDoubleExp2Error * fraction.high;
  const odd = roundToOdd(fraction.high, fraction.low, error);
  return odd === undefined ? undefined : odd * 2 ** exponent;
}

/** As `exp2ToOddByDoubleDouble`, in fixed point of as many bits as it takes. */
export function exp2ToOddByFixedPoint(x: number): number {
  const { integer, exponent } = scaledIntegerOf(x);
  const whole = Math.floor(x);
  return withGrowingPrecision((bits) => {
    // Not yet enough bits to hold x exactly.
    if (exponent + bits < 0) return undefined;
    const fraction = shiftBigInt(integer, exponent + bits) - (BigInt(whole) << BigInt(bits));
    // createExp2 errs by up to 2 units times 2^⌈fraction⌉.
    const odd = fixedPointToOdd(createExp2(bits)(fraction), 4n, bits);
    return odd === undefined ? undefined : odd * 2 ** whole;
  });
}
