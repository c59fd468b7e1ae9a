import { nextDownFloat64, nextUpFloat64, scaledIntegerOf } from '../src/arith/index.js';
import {
  formats,
  round,
  type NumberFormat,
  type RoundingMode,
  type RoundingOptions,
} from '../src/formats/index.js';
import { RequestError } from '../src/request-error.js';
import { bitLength, shiftBigInt } from './fixed-point.js';

/**
 * Correct rounding of a transcendental function by Ziv's strategy ("Fast evaluation of elementary
 * mathematical functions with correctly rounded last bit", ACM TOMS 17(3), 1991): approximate with a
 * proven error bound, and when both ends of that interval round alike, so does the exact value;
 * otherwise approximate better. When the exact value is irrational it is neither a number of the
 * format nor a midpoint of two, the only places where rounding changes, so some precision decides.
 */

/**
 * The relative width on each side that `roundIrrational` takes the fp64 approximation for. The
 * approximation itself must be better by one unit roundoff, 7·2^-53, since the ends of the interval
 * are rounded too.
 */
const margin = 2 ** -50;

/** The largest relative error that the fp64 approximations given to `roundIrrational` may have. */
export const approximationError = 7 * 2 ** -53;

/**
 * The largest precision of a format rounded to: two bits below fp64's, so that a number rounded to
 * odd in fp64 rounds on as the exact one does, with one bit to spare.
 */
const largestPrecision = 50;

const optionsOf: Readonly<Record<RoundingMode, RoundingOptions>> = {
  'nearest-even': { rounding: 'nearest-even' },
  'toward-zero': { rounding: 'toward-zero' },
  down: { rounding: 'down' },
  up: { rounding: 'up' },
};

/**
 * The fp64 value rounded once to the format, overflow as IEEE 754 has it for the mode.
 * @throws RequestError for fp64 as format and for an unknown mode.
 */
export function roundExact(value: number, format: NumberFormat, rounding: RoundingMode): number {
  if (format.precision > largestPrecision)
    throw new RequestError(
      `cannot round correctly to ${format.name}, whose precision is ${format.precision} bits; give a format of at most ${largestPrecision}, such as fp32`,
    );
  const options = optionsOf[rounding];
  if (options === undefined)
    throw new RequestError(
      `no rounding mode '${String(rounding)}'; use nearest-even, toward-zero, down or up`,
    );
  return round(format, value, options);
}

/**
 * The irrational f(x) rounded once to the format.
 * @param approximation f(x) in fp64 with relative error at most `approximationError`; normal
 * @param toOdd f(x) rounded to odd in fp64; called only when the approximation cannot decide
 * @throws RequestError as `roundExact`.
 */
export function roundIrrational(
  x: number,
  approximation: number,
  toOdd: (x: number) => number,
  format: NumberFormat,
  rounding: RoundingMode,
): number {
  const radius = approximation * margin;
  const one = approximation - radius;
  const other = approximation + radius;
  if (format === formats.fp32 && rounding === 'nearest-even') {
    const nearest = Math.fround(one);
    if (nearest === Math.fround(other)) return nearest;
  } else {
    const rounded = roundExact(one, format, rounding);
    const alike = roundExact(other, format, rounding);
    if (rounded === alike || (Number.isNaN(rounded) && Number.isNaN(alike))) return rounded;
  }
  return roundExact(toOdd(x), format, rounding);
}

/**
 * The irrational number within `error` of high + low (high the sum rounded to fp64, and normal),
 * rounded to odd in fp64: of the two fp64 numbers around it, the one whose significand ends in 1. It
 * lies on the same side of, and never on, every number and midpoint of a format with two bits less,
 * so rounding it to such a format rounds the exact number (Boldo and Melquiond, "Emulation of FMA
 * and correctly rounded sums: proved algorithms using rounding to odd", IEEE TC 57(4), 2008).
 * Undefined when the error hides on which side of `high` the number lies.
 */
export function roundToOdd(high: number, low: number, error: number): number | undefined {
  if (!(Math.abs(low) > error)) return undefined;
  if ((scaledIntegerOf(high).integer & 1n) === 1n) return high;
  return low > 0 ? nextUpFloat64(high) : nextDownFloat64(high);
}

/**
 * The irrational number within `error` units of x, a unit being 2^-bits, rounded to odd in fp64 as
 * by `roundToOdd`. Undefined when an fp64 number, or zero, lies within the error. The result must be
 * a normal fp64 number.
 */
export function fixedPointToOdd(x: bigint, error: bigint, bits: number): number | undefined {
  const magnitude = x < 0n ? -x : x;
  const least = magnitude - error;
  const shift = bitLength(least) - 53;
  if (least <= 0n || shift <= 0) return undefined;
  const below = shiftBigInt(least, -shift);
  if (shiftBigInt(magnitude + error, -shift) !== below) return undefined;
  return (x < 0n ? -1 : 1) * Number(below | 1n) * 2 ** (shift - bits);
}

/** Fraction bits of the first attempt in fixed point, doubled until it decides. */
const firstBits = 128;

/**
 * The first result of `attempt` that is not undefined, tried with twice the bits each time. It ends
 * when the number sought is irrational and the attempt's error goes to zero.
 */
export function withGrowingPrecision(attempt: (bits: number) => number | undefined): number {
  for (let bits = firstBits; ; bits *= 2) {
    const result = attempt(bits);
    if (result !== undefined) return result;
  }
}
