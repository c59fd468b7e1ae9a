import type { Float64ArrayFunction } from './exp2.js';
import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  doubleDouble,
  type DoubleDouble,
  doubleDoubleFromRational,
  float64FromRational,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  scaledIntegerOf,
} from '../src/arith/index.js';
import {
  fixedPointToOdd,
  roundExact,
  roundIrrational,
  roundToOdd,
  withGrowingPrecision,
} from './correct-rounding.js';
import { doubleDoubleExp2 } from './exp2.js';
import { bitLength, log2e, naturalLogarithm, shiftBigInt } from './fixed-point.js';
import { lazily } from '../src/reuse.js';
import type { NumberFormat, RoundingMode } from '../src/formats/index.js';

/**
 * log2 x rounded once to the format, from the exact value, for every fp64 x (and so for every number
 * of the other formats, subnormals included). Default to nearest, ties to even. log2 of either zero
 * is −∞ and of ∞ is ∞ (NaN in a format without infinity), of 1 it is +0 in every mode; NaN for
 * negative numbers and NaN. A result below the format's smallest numbers rounds to a zero of its own
 * sign or to the smallest subnormal, as the mode demands.
 *
 * Exact results: for a power of two, log2 x is its exponent, rounded as such. For every other x > 0,
 * an odd a > 1 times 2^k, log2 x is irrational: were it p/q, then a^q·2^(kq) = 2^p, but a^q is odd
 * and more than 1. So no other result is a number of the format or a midpoint, and approximating
 * better and better ends.
 *
 * @throws RequestError for fp64 as format (it has no room for correct rounding here) and for an
 * unknown mode.
 */
export function log2Rounded(
  x: number,
  format: NumberFormat,
  rounding: RoundingMode = 'nearest-even',
): number {
  if (!(x > 0 && x < Infinity))
    return roundExact(x === 0 ? -Infinity : x > 0 ? Infinity : NaN, format, rounding);
  const approximation = float64Log2()(x);
  // Only the logarithm of a power of two is an integer, and only within the error around an integer
  // can x be one.
  if (Number.isInteger(approximation) && isPowerOfTwo(x, approximation))
    return roundExact(approximation, format, rounding);
  return roundIrrational(x, approximation, log2ToOdd, format, rounding);
}

function isPowerOfTwo(x: number, exponent: number): boolean {
  return x === 2 ** exponent;
}

const float64Log2 = lazily(createFloat64Log2);

/**
 * ln x of a finite x > 0 in fp64, with a proven radius: 7u of the result, u = 2^-53. The fp64 log2 errs by 5u of itself,
 * fp64's ln 2 by 0.4u, and their product is rounded once. Of 1 it is 0, with no error. NaN with radius NaN for every other x.
 */
export function float64Logarithm(x: number): { readonly value: number; readonly radius: number } {
  if (!(x > 0 && x < Infinity)) return { value: NaN, radius: NaN };
  const value = float64Log2()(x) * Math.LN2;
  return { value, radius: 7 * 2 ** -53 * Math.abs(value) };
}

function log2ToOdd(x: number): number {
  return log2ToOddByDoubleDouble(x) ?? log2ToOddByFixedPoint(x);
}

/** The relative error that the values of `createLog2Array` stay below. */
export const log2ArrayError = 5 * 2 ** -53;

/**
 * A function for log2 x of finite fp32 numbers x > 0, in fp64 with relative error below
 * `log2ArrayError` (see `createFloat64Log2`); powers of two give the integer itself. Meaningless for
 * other inputs.
 */
export function createLog2Array(): Float64ArrayFunction {
  const log2 = createFloat64Log2();
  return (inputs, values, count) => {
    for (let i = 0; i < count; i++) values[i] = log2(inputs[i]);
  };
}

/** Intervals of the significand in [1, 2) with a table entry each. */
const intervals = 128;
/** Significands from here on, 1.4140625, count as halves of themselves in the next binade. */
const firstHalved = 53;
/** Fraction bits of the tabulated reciprocals. */
const reciprocalBits = 12;
/** Adding and subtracting this to a number in [1, 2) rounds it to a multiple of 2^-38. */
const toShortSignificand = 2 ** 14;

interface ReciprocalTable {
  /** c ≈ 1/m for the significands m of each interval; 1 in the first and 1/2 in the last. */
  readonly reciprocals: Float64Array;
  /** −log2 c, less 1 from `firstHalved` on; 0 in the first and the last. */
  readonly logarithms: Float64Array;
}

function reciprocalTable(): ReciprocalTable {
  const bits = 100;
  const reciprocals = new Float64Array(intervals);
  const logarithms = new Float64Array(intervals);
  for (let i = 0; i < intervals; i++) {
    const middle = 1 + (i + 0.5) / intervals;
    const scaled = Math.round(2 ** reciprocalBits / middle);
    const edge = i === 0 ? 2 ** reciprocalBits : 2 ** (reciprocalBits - 1);
    const c = BigInt(i === 0 || i === intervals - 1 ? edge : scaled);
    const halvings = i < firstHalved ? 0n : 1n;
    const logarithm = fixedPointLog2(c << BigInt(bits - reciprocalBits), bits);
    reciprocals[i] = Number(c) / 2 ** reciprocalBits;
    logarithms[i] =
      i === 0 || i === intervals - 1
        ? 0
        : float64FromRational(-logarithm - (halvings << BigInt(bits)), 1n << BigInt(bits));
  }
  return { reciprocals, logarithms };
}

/**
 * A function for log2 x in fp64 with relative error below 5u, u = 2^-53, for every finite x > 0
 * but 1.
 *
 * x = m·2^e. With c from a table, z = m·c − 1 is below 2^-7 and, m cut into 39 bits and the rest,
 * rounded once only; log2 x = a + q with a = e − log2 c, q = log2(1 + z) by the series of degree 8.
 * q errs by 4.2u of itself: z, the leading coefficient, its sum with the rest, and the product u
 * each, all else, the series cut at z^9/9 included, below 0.2u. Around 1, a is 0 and q the result.
 * Elsewhere |a| ≤ 1.5 |log2 x| and |q| ≤ |log2 x|/2 (the worst is next to 1), a errs by u of itself,
 * and the last sum adds u: at most 4.6u. For e ≠ 0, |log2 x| ≥ 0.48 and |q| < 0.012: two roundings
 * of a, one of the sum.
 */
export function createFloat64Log2(): (x: number) => number {
  const { reciprocals, logarithms } = reciprocalTable();
  const bits = 160;
  const logarithm = log2e(bits);
  const [c1, c2, c3, c4, c5, c6, c7, c8] = Array.from({ length: 8 }, (_, i) =>
    float64FromRational(i % 2 === 0 ? logarithm : -logarithm, BigInt(i + 1) << BigInt(bits)),
  ) as [number, number, number, number, number, number, number, number];
  const value = new Float64Array([1]);
  const words = new Uint32Array(value.buffer);
  const high = words[0] === 0 ? 1 : 0;
  return (x) => {
    const isSubnormal = x < 2 ** -1022;
    value[0] = isSubnormal ? x * 2 ** 54 : x;
    const word = words[high];
    words[high] = (word & 0xfffff) | 0x3ff00000;
    const m = value[0];
    const i = (word >>> 13) & (intervals - 1);
    const e = (word >>> 20) - (isSubnormal ? 1077 : 1023) + (i < firstHalved ? 0 : 1);
    const c = reciprocals[i];
    const short = m + toShortSignificand - toShortSignificand;
    const z = short * c - 1 + (m - short) * c;
    const p = c4 + z * (c5 + z * (c6 + z * (c7 + z * c8)));
    return e + logarithms[i] + z * (c1 + z * (c2 + z * (c3 + z * p)));
  };
}

interface DoubleDoubleLog2 {
  readonly log2e: DoubleDouble;
  readonly start: (x: number) => number;
}

const doubleDoubleParts = lazily((): DoubleDoubleLog2 => {
  const bits = 200;
  return {
    log2e: doubleDoubleFromRational(log2e(bits), 1n << BigInt(bits)),
    start: createFloat64Log2(),
  };
});

/** x = significand · 2^exponent with a significand in [1, 2), for x > 0; exact. */
function normalized(x: number): { readonly significand: number; readonly exponent: number } {
  const { integer, exponent } = scaledIntegerOf(x);
  const shift = bitLength(integer) - 1;
  return { significand: Number(integer) / 2 ** shift, exponent: exponent + shift };
}

/**
 * log2 x in double-double arithmetic, for a finite x > 0.
 *
 * One step from the fp64 value y: log2 x = y + log2(1 + d), d = x·2^-y − 1, |d| < 2^-38. d errs by
 * 2^-100 from 2^-y and 1.5u² from the product; log2(1 + d) = (d − d²/2)·log2 e, cut at d³/3 < 2^-115;
 * together below 2^-98. The last sum adds 2u² of the result.
 */
export function doubleDoubleLog2(x: number): DoubleDouble {
  const { log2e, start } = doubleDoubleParts();
  const y = start(x);
  const { significand, exponent } = normalized(x);
  const power = doubleDoubleExp2(doubleDouble(-y));
  const quotient = multiplyDoubleDoubleByFloat64(
    power.fraction,
    significand * 2 ** (exponent + power.exponent),
  );
  const d = addFloat64ToDoubleDouble(quotient, -1);
  const series = addDoubleDouble(d, doubleDouble(-(d.high * d.high) / 2));
  return addFloat64ToDoubleDouble(multiplyDoubleDouble(series, log2e), y);
}

/**
 * log2 of a double-double above 0, with the error of `doubleDoubleLog2`: the first term of log2(1 + low / high) is
 * added, and the next one is below 2^-106.
 */
export function log2OfDoubleDouble({ high, low }: DoubleDouble): DoubleDouble {
  const { log2e } = doubleDoubleParts();
  return addDoubleDouble(doubleDoubleLog2(high), multiplyDoubleDoubleByFloat64(log2e, low / high));
}

/** Proven absolute error of `doubleDoubleLog2`, given the high word of its result. */
export function doubleDoubleLog2Error(high: number): number {
  return 2 ** -98 + 2 ** -104 * Math.abs(high);
}

/**
 * log2 x rounded to odd in fp64 by double-double arithmetic, for a finite x > 0 that is no power of
 * two; undefined when its error cannot tell.
 */
export function log2ToOddByDoubleDouble(x: number): number | undefined {
  const { high, low } = doubleDoubleLog2(x);
  return roundToOdd(high, low, doubleDoubleLog2Error(high));
}

/** The result of `log2ToOddByDoubleDouble`, in fixed point of as many bits as it takes. */
export function log2ToOddByFixedPoint(x: number): number {
  const { significand, exponent } = normalized(x);
  const { integer, exponent: unit } = scaledIntegerOf(significand);
  return withGrowingPrecision((bits) => {
    const logarithm = fixedPointLog2(shiftBigInt(integer, unit + bits), bits);
    return fixedPointToOdd(logarithm + (BigInt(exponent) << BigInt(bits)), 3n, bits);
  });
}

/** log2(x · 2^-bits) · 2^bits for x > 0, within 3 units. */
function fixedPointLog2(x: bigint, bits: number): bigint {
  // Four guard bits: naturalLogarithm's two units and log2e's one are below one unit after them.
  const work = bits + 4;
  return (naturalLogarithm(x << 4n, work) * log2e(work)) >> BigInt(work + 4);
}
