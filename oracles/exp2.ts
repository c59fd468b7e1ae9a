import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  doubleDouble,
  type DoubleDouble,
  doubleDoubleFromRational,
  float64FromRational,
  multiplyDoubleDouble,
  scaledIntegerOf,
} from '../src/arith/index.js';
import { lazily } from '../src/reuse.js';
import { createExp2, ln2, shiftBigInt } from './fixed-point.js';
import {
  fixedPointToOdd,
  roundExact,
  roundIrrational,
  roundToOdd,
  withGrowingPrecision,
} from './correct-rounding.js';
import type { NumberFormat, RoundingMode } from '../src/formats/index.js';

/**
 * 2^x rounded once to the format, from the exact value, for every fp64 x (and so for every number of
 * the other formats). Default to nearest, ties to even. Subnormal results are kept. 2^∞ is ∞ (NaN
 * in a format without infinity), 2^-∞ is +0, 2^NaN is NaN; overflow gives infinity or the largest
 * finite value as IEEE 754 has it for the mode, and underflow 0 or the smallest subnormal.
 *
 * Exact results: for an integer x, 2^x is a power of two, rounded as such. For every other x = a/2^k
 * (a odd, k ≥ 1) 2^x is irrational: were it p/q, then p^(2^k) = 2^a·q^(2^k), and the number of
 * factors 2 on the two sides would differ modulo 2^k. So no other result is a number of the format
 * or a midpoint, and approximating better and better ends.
 *
 * @throws RequestError for fp64 as format (it has no room for correct rounding here) and for an
 * unknown mode.
 */
export function exp2Rounded(
  x: number,
  format: NumberFormat,
  rounding: RoundingMode = 'nearest-even',
): number {
  const { maxExponent, minExponent, precision } = format;
  if (x < maxExponent + 1 && x > minExponent - precision - 1) {
    if (Math.abs(x) > 2 ** (-precision - 2)) {
      if (x !== Math.floor(x))
        return roundIrrational(x, float64Exp2()(x), exp2ToOdd, format, rounding);
      return roundExact(2 ** x, format, rounding);
    }
    // |2^x − 1| < |x|: strictly between 1 and the next place where rounding changes.
    if (x !== 0) return roundExact(x > 0 ? 1 + 2 ** -52 : 1 - 2 ** -53, format, rounding);
    return roundExact(1, format, rounding);
  }
  if (x === -Infinity) return roundExact(0, format, rounding);
  // All positive values below half the smallest subnormal round alike, and so do all finite ones
  // from twice the topmost binade on.
  if (x < 0) return roundExact(2 ** (minExponent - precision - 1), format, rounding);
  return roundExact(x < Infinity ? 2 ** (maxExponent + 1) : x, format, rounding);
}

const float64Exp2 = lazily(createFloat64Exp2);

function exp2ToOdd(x: number): number {
  return exp2ToOddByDoubleDouble(x) ?? exp2ToOddByFixedPoint(x);
}

/** Writes the function of the first `count` inputs, in fp64, to `values`. */
export type Float64ArrayFunction = (
  inputs: Float32Array,
  values: Float64Array,
  count: number,
) => void;

/** The relative error that the values of `createExp2Array` stay below. */
export const exp2ArrayError = 3 * 2 ** -53;

/**
 * A function for 2^x of fp32 numbers x in [−1000, 1000], in fp64 with relative error below
 * `exp2ArrayError` (see `createFloat64Exp2`); integers give the power of two itself. Meaningless for
 * other inputs.
 */
export function createExp2Array(): Float64ArrayFunction {
  const exp2 = createFloat64Exp2();
  return (inputs, values, count) => {
    for (let i = 0; i < count; i++) values[i] = exp2(inputs[i]);
  };
}

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

/** 2^y as fraction · 2^exponent, the fraction in [0.98, 2.03). */
interface ScaledDoubleDouble {
  readonly fraction: DoubleDouble;
  readonly exponent: number;
}

/** Fractions of an octave in the table. */
const tableSteps = 32;

/** The Taylor polynomial's degree: its truncation is below 2^-127 for |t| ≤ ln 2 / 64. */
const taylorDegree = 13;

/** Proven relative error of `doubleDoubleExp2`. */
export const doubleDoubleExp2Error = 2 ** -100;

interface Exp2Constants {
  /** 2^(i/32). */
  readonly table: readonly DoubleDouble[];
  /** ln 2. */
  readonly logarithm: DoubleDouble;
  /** 1/k! for k = 1 … 13. */
  readonly coefficients: readonly DoubleDouble[];
}

/** The constants, which take fixed-point arithmetic of 200 bits. */
const exp2Constants = lazily((): Exp2Constants => {
  const bits = 200;
  const one = 1n << BigInt(bits);
  const exp2 = createExp2(bits);
  const table = Array.from({ length: tableSteps }, (_, i) =>
    doubleDoubleFromRational(exp2((BigInt(i) << BigInt(bits)) / BigInt(tableSteps)), one),
  );
  const coefficients: DoubleDouble[] = [];
  let factorial = 1n;
  for (let k = 1; k <= taylorDegree; k++) {
    factorial *= BigInt(k);
    coefficients.push(doubleDoubleFromRational(1n, factorial));
  }
  return { table, logarithm: doubleDoubleFromRational(ln2(bits), one), coefficients };
});

/**
 * 2^y in double-double arithmetic, |y| ≤ 2^41, with relative error at most 2^-100 (y itself taken as
 * exact). y = n + i/32 + r, |r| ≤ 1/64; 2^(i/32) from a table made in fixed point (error 2^-106);
 * e^(r ln 2) by Horner's rule. Errors, u = 2^-53: subtraction 3u²·|r| and product with ln 2 6u²·|r|,
 * both below u²/5; the polynomial's last sum 3u² and 8u²·|t| of the step before; the final product
 * 5u²; the table u²: together below 12u² < 2^-102.
 */
export function doubleDoubleExp2(y: DoubleDouble): ScaledDoubleDouble {
  const { table, logarithm, coefficients } = exp2Constants();
  const step = Math.round(y.high * tableSteps);
  const exponent = Math.floor(step / tableSteps);
  const r = addFloat64ToDoubleDouble(y, -step / tableSteps);
  const t = multiplyDoubleDouble(r, logarithm);
  let polynomial = coefficients[taylorDegree - 1];
  for (let k = taylorDegree - 2; k >= 0; k--)
    polynomial = addDoubleDouble(multiplyDoubleDouble(polynomial, t), coefficients[k]);
  polynomial = addDoubleDouble(multiplyDoubleDouble(polynomial, t), doubleDouble(1));
  return {
    fraction: multiplyDoubleDouble(table[step - exponent * tableSteps], polynomial),
    exponent,
  };
}

/** The result of `exp2ToOddByDoubleDouble`, in fixed point of as many bits as it takes. */
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
