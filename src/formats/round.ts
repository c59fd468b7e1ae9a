import { RequestError } from '../request-error.js';
import { exponentOf, powerOfTwo } from './binary64.js';
import { smallestNormal, smallestSubnormal, type NumberFormat } from './format.js';

/** The direction of rounding, as in IEEE 754-2019 section 4.3 (PTX: .rn, .rz, .rm, .rp). */
export type RoundingMode = 'nearest-even' | 'toward-zero' | 'down' | 'up';

/**
 * Result for a value beyond the largest finite number. `overflow`: as IEEE 754-2019 section 7.4 has it for the rounding mode,
 * infinity or the largest finite number; in an `fn` format, which has no infinity, NaN takes infinity's place, also for an
 * infinite value, and a format without NaN saturates. `saturate`: the largest finite number with the value's sign, for
 * infinite values too (PTX: .satfinite). NaN stays NaN.
 */
export type OverflowMode = 'overflow' | 'saturate';

/** Options of one rounding. The default is to nearest, ties to even, with IEEE overflow, keeping subnormals. */
export interface RoundingOptions {
  readonly rounding?: RoundingMode;
  readonly overflow?: OverflowMode;
  /**
   * Whether a tiny result becomes zero with its sign (PTX: .ftz on the result). A result is tiny
   * when the value, rounded as if the exponent had no lower bound, is below the smallest normal
   * number in magnitude; so sm_90 does it (fixtures/silicon/sm_90/edge-cases.json).
   */
  readonly flushSubnormals?: boolean;
}

/** Rounding of the magnitude of a number whose sign is known. */
export type MagnitudeRounding = 'nearest-even' | 'toward-zero' | 'away-from-zero';

/** The rounding of magnitudes that each rounding mode means for positive and for negative numbers. */
export const magnitudeRounding: Readonly<
  Record<
    RoundingMode,
    { readonly positive: MagnitudeRounding; readonly negative: MagnitudeRounding }
  >
> = {
  'nearest-even': { positive: 'nearest-even', negative: 'nearest-even' },
  'toward-zero': { positive: 'toward-zero', negative: 'toward-zero' },
  down: { positive: 'toward-zero', negative: 'away-from-zero' },
  up: { positive: 'away-from-zero', negative: 'toward-zero' },
};

/**
 * The number of the format that `value` rounds to, as an fp64 number: exactly one rounding, from the
 * exact fp64 value, in the given direction (default to nearest, ties to even). Signed zeros keep
 * their sign and a value that rounds to zero keeps its own. NaN gives NaN. Subnormals are kept
 * unless `flushSubnormals` is set. {@link OverflowMode} gives the results for infinities and for
 * values beyond the largest finite number; they may come out as ±Infinity, or NaN in an `fn` format.
 */
export function round(format: NumberFormat, value: number, options?: RoundingOptions): number {
  // The most frequent call, served without looking at options.
  if (options === undefined) return roundToNearest(format, value);
  const { rounding = 'nearest-even', overflow = 'overflow', flushSubnormals = false } = options;
  if (Number.isNaN(value)) return format.specials === 'finite' ? format.maxFinite : NaN;
  const negative = value < 0 || Object.is(value, -0);
  const direction = magnitudeRounding[rounding][negative ? 'negative' : 'positive'];
  const magnitude = roundMagnitude(format, Math.abs(value), direction, flushSubnormals);
  const result =
    magnitude <= format.maxFinite
      ? magnitude
      : overflowed(format, Math.abs(value) === Infinity, direction, overflow);
  return negative ? -result : result;
}

/** `round` without options. */
function roundToNearest(format: NumberFormat, value: number): number {
  const magnitude = Math.abs(value);
  if (!(magnitude < Infinity && magnitude > 0)) return round(format, value, nearestEven);
  const binade = Math.max(exponentOf(magnitude), format.minExponent);
  const quantum = powerOfTwo(Math.max(binade - format.precision + 1, -1074));
  const rounded = roundedToEven(magnitude / quantum) * quantum;
  if (rounded > format.maxFinite) return round(format, value, nearestEven);
  return value < 0 ? -rounded : rounded;
}

const nearestEven: RoundingOptions = { rounding: 'nearest-even' };

/** The nearest integer to a non-negative number: from 2^52 on fp64 numbers are integers, and the addition rounds to nearest even. */
function roundedToEven(x: number): number {
  return x < 2 ** 52 ? x + 2 ** 52 - 2 ** 52 : x;
}

/** Rounds as if the exponent had no upper bound; Infinity for a value that rounds beyond fp64. */
function roundMagnitude(
  format: NumberFormat,
  magnitude: number,
  direction: MagnitudeRounding,
  flushSubnormals: boolean,
): number {
  if (magnitude === 0 || magnitude === Infinity) return magnitude;
  const exponent = exponentOf(magnitude);
  const binade = flushSubnormals ? exponent : Math.max(exponent, format.minExponent);
  // No fp64 number has a digit below 2^-1074, so a finer quantum would round nothing.
  const quantum = powerOfTwo(Math.max(binade - format.precision + 1, -1074));
  // The quotient is exact: either it has p digits before the point, or quantum is the smallest
  // subnormal, which is below one, and dividing by it cannot underflow.
  const rounded = toInteger[direction](magnitude / quantum) * quantum;
  return flushSubnormals && rounded < smallestNormal(format) ? 0 : rounded;
}

/** Rounds a non-negative number to an integer. */
const toInteger: Readonly<Record<MagnitudeRounding, (x: number) => number>> = {
  'nearest-even': roundedToEven,
  'toward-zero': Math.floor,
  'away-from-zero': Math.ceil,
};

/** The magnitude that stands for one beyond the largest finite number. */
export function overflowed(
  format: NumberFormat,
  infinite: boolean,
  direction: MagnitudeRounding,
  overflow: OverflowMode,
): number {
  if (overflow === 'saturate' || format.specials === 'finite') return format.maxFinite;
  if (direction === 'toward-zero' && !infinite) return format.maxFinite;
  return format.specials === 'ieee' ? Infinity : NaN;
}

/**
 * The unit in the last place at x: the spacing of the format's numbers in the binade of |x|,
 * 2^(e - p + 1) with e = ⌊log2|x|⌋ brought between the format's smallest and largest exponent. So
 * it is the smallest subnormal at zero and throughout the subnormals, and beyond the largest finite
 * number it stays that of the top binade. x need not be representable in the format. NaN at
 * ±Infinity and NaN.
 */
export function ulp(format: NumberFormat, x: number): number {
  if (!Number.isFinite(x)) return NaN;
  const { precision, minExponent, maxExponent } = format;
  const exponent = Math.min(Math.max(exponentOf(x), minExponent), maxExponent);
  return powerOfTwo(exponent - precision + 1);
}

/**
 * The least number of the format that compares greater than x (nextUp of IEEE 754-2019 section
 * 5.3.1): the smallest subnormal at ±0, −0 at the negative smallest subnormal, Infinity at the
 * largest finite number and at Infinity, NaN at NaN. An `fn` format has no infinity, so there the
 * largest finite number is followed by NaN. Throws a RequestError for an x the format does not hold.
 */
export function nextUp(format: NumberFormat, x: number): number {
  if (Number.isNaN(x)) return NaN;
  checkRepresentable(format, x);
  if (x === Infinity) return Infinity;
  if (x === -Infinity) return -format.maxFinite;
  if (x === format.maxFinite) return format.specials === 'ieee' ? Infinity : NaN;
  if (x === 0) return smallestSubnormal(format);
  return x > 0 ? x + ulp(format, x) : -(-x - spacingBelow(format, -x));
}

/** The greatest number of the format that compares less than x: −nextUp(−x). */
export function nextDown(format: NumberFormat, x: number): number {
  return -nextUp(format, -x);
}

/** The distance from a positive number of the format to the one below: half an ulp at a power of two. */
function spacingBelow(format: NumberFormat, x: number): number {
  const startsBinade = x > smallestNormal(format) && x === powerOfTwo(exponentOf(x));
  return startsBinade ? ulp(format, x) / 2 : ulp(format, x);
}

function checkRepresentable(format: NumberFormat, x: number): void {
  const nearest = round(format, x);
  if (nearest !== x) {
    throw new RequestError(
      `${x} is no ${format.name} number, so it has no neighbours in the format; round it first (to nearest: ${nearest})`,
    );
  }
}
