import { formats, type RoundingMode } from '../formats/index.js';
import { RequestError } from '../request-error.js';

// Written and read back within one call: they hold no state between calls.
const words = new Uint32Array(1);
const floats = new Float32Array(words.buffer);

const { canonicalNan } = formats.fp32;

/** The fp32 number with a bit pattern from 0 to 2^32 − 1; the payload of a NaN is lost. */
export function float32Of(bits: number): number {
  words[0] = bits;
  return floats[0];
}

/**
 * The bit pattern of a number, from 0 to 2^32 − 1: of the nearest fp32 number (to nearest even) where it is none itself.
 * Every NaN gives 0x7fffffff, which NVIDIA's arithmetic delivers.
 */
export function bitsOfFloat32(value: number): number {
  if (value !== value) return canonicalNan;
  floats[0] = value;
  return words[0];
}

const { maxFinite } = formats.fp32;
/** Halfway from the largest finite fp32 value to 2^128: from here up, nearest even is infinity. */
const overflowMidpoint = maxFinite + 2 ** 103;

/**
 * sum + error rounded once to fp32 in a directed mode, where sum is the exact value rounded to
 * nearest fp64 and error what that rounding left out.
 *
 * Rounding is monotone and every fp32 value is an fp64 value, so sum lies on the same side of each
 * fp32 value as the exact value, or on it; only there does the error decide.
 */
function roundDirected(sum: number, error: number, rounding: RoundingMode): number {
  const nearest = Math.fround(sum);
  const excess = nearest === sum ? -error : nearest - sum;
  switch (rounding) {
    case 'down':
      return excess > 0 ? nextDownFloat32(nearest) : nearest;
    case 'up':
      return excess < 0 ? nextUpFloat32(nearest) : nearest;
    case 'toward-zero':
      if (sum > 0) return excess > 0 ? nextDownFloat32(nearest) : nearest;
      return excess < 0 ? nextUpFloat32(nearest) : nearest;
    default:
      throw new RequestError(
        `no rounding mode '${String(rounding)}'; use nearest-even, toward-zero, down or up`,
      );
  }
}

/**
 * sum + error rounded once to nearest even fp32. Only when sum is the midpoint of two fp32
 * neighbours can the error change where it goes.
 */
function roundToNearest(sum: number, error: number): number {
  const nearest = Math.fround(sum);
  if (error === 0 || !isFloat32Midpoint(sum, nearest)) return nearest;
  // The other neighbour is as far beyond the midpoint as the nearest is before it.
  const other = Math.abs(nearest) === Infinity ? Math.sign(sum) * maxFinite : 2 * sum - nearest;
  return nearest > sum === error > 0 ? nearest : other;
}

/**
 * Whether an fp64 value is halfway between two fp32 neighbours, given the value rounded to fp32 (so
 * that the edge of overflow, (2 − 2^−24)·2^127, counts). False for fp32 values, infinities and NaN.
 */
export function isFloat32Midpoint(value: number, nearest: number): boolean {
  const toOther = value - nearest;
  const other = value + toOther;
  if (Math.fround(other) !== other || toOther === 0) return false;
  return Math.abs(toOther) !== Infinity || Math.abs(value) === overflowMidpoint;
}

/**
 * The exact value sum + error rounded once to fp32.
 *
 * `sum` must be the exact value rounded to nearest fp64 and `error` the remainder, as `sumError` and
 * `productError` give it. Overflow goes to infinity or to the largest finite value as the mode
 * demands; subnormals are kept. A zero, whose error is zero too, keeps its sign; an infinite or NaN
 * sum is returned as it is, whatever the error. Throws a RequestError for an unknown rounding mode.
 */
export function roundSumToFloat32(sum: number, error: number, rounding: RoundingMode): number {
  return rounding === 'nearest-even'
    ? roundToNearest(sum, error)
    : roundDirected(sum, error, rounding);
}

/** Between half an ulp and one ulp and a half of any fp32 number, as a fraction of it. */
const nudge = 0.625 * 2 ** -23;
/** As much for the subnormals, whose ulp is 2^−149. */
const smallestNudge = 0.75 * 2 ** -149;

/** The fp32 value above a given one: IEEE 754-2019 nextUp. */
function nextUpFloat32(value: number): number {
  if (value === -Infinity) return -maxFinite;
  return Math.fround(value + Math.max(Math.abs(value) * nudge, smallestNudge));
}

/** The fp32 value below a given one: IEEE 754-2019 nextDown. */
function nextDownFloat32(value: number): number {
  if (value === Infinity) return maxFinite;
  return Math.fround(value - Math.max(Math.abs(value) * nudge, smallestNudge));
}

const minNormal = 2 ** formats.fp32.minExponent;

/**
 * As `roundSumToFloat32`, flushing a tiny result to the zero of its sign as PTX `.ftz` does: tiny
 * means below 2^−126 once rounded to 24 bits with an unbounded exponent (see `Float32Options`).
 */
export function roundSumToFloat32FlushingToZero(
  sum: number,
  error: number,
  rounding: RoundingMode,
): number {
  const rounded = roundSumToFloat32(sum, error, rounding);
  const magnitude = Math.abs(rounded);
  if (!(magnitude <= minNormal)) return rounded;
  if (magnitude < minNormal) return rounded * 0;
  // Twice the value, rounded, shows the 24 bits that the value itself would have just below 2^−126.
  const doubled = roundSumToFloat32(2 * sum, 2 * error, rounding);
  return Math.abs(doubled) < 2 * minNormal ? rounded * 0 : rounded;
}

/** A subnormal fp32 operand replaced by the zero of its sign; any other value as it is. */
export function flushOperand(value: number): number {
  return Math.abs(value) < minNormal ? value * 0 : value;
}
