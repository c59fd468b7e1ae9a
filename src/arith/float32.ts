import type { RoundingMode } from '../formats/index.js';
import {
  flushOperand,
  isFloat32Midpoint,
  roundSumToFloat32,
  roundSumToFloat32FlushingToZero,
} from './float32-rounding.js';
import { sumError } from './error-free.js';

/** How an fp32 operation rounds; the PTX modifiers `.rn`, `.rz`, `.rm`, `.rp` and `.ftz`. */
export interface Float32Options {
  /** Default `nearest-even`. */
  readonly rounding?: RoundingMode;
  /**
   * Replace subnormal operands and tiny results by the zero of the same sign; default false.
   *
   * The PTX ISA ("Floating Point Instructions") says only that `.ftz` flushes subnormal inputs and
   * results to sign-preserving zero. Whether a result is tiny is decided after rounding it to 24
   * bits as if the exponent were unbounded (IEEE 754's tininess after rounding), not on the exact
   * result, nor on the result rounded to the subnormal grid: measured on an H200 (sm_90) with CUDA
   * 13.0 for add, mul and fma in all four modes. (1 − 2^−24)·2^−126 is flushed, though fp32 without
   * `.ftz` rounds it to 2^−126; (1 − 2^−26)·2^−126 is kept as 2^−126, but flushed under `.rz`.
   */
  readonly flushToZero?: boolean;
}

/**
 * The zero that two addends of exact sum zero give: the addends' own when they are zeros of one
 * sign, else −0 when rounding down and +0 otherwise (IEEE 754-2019, 6.3).
 */
function zeroSum(a: number, b: number, rounding: RoundingMode): number {
  if (rounding !== 'down') return a + b;
  return Object.is(a, 0) && Object.is(b, 0) ? 0 : -0;
}

/**
 * The fp32 sum of two fp32 values, rounded once from the exact sum: PTX `add{.rnd}{.ftz}.f32`.
 *
 * Operands must be fp32 values; this is not checked. Default: nearest even, subnormals kept. A sum
 * of opposite signs that is exactly zero is +0, or −0 when rounding down; ∞ − ∞ is NaN; overflow
 * goes to infinity or the largest finite value as the mode demands. Throws a RequestError for an
 * unknown rounding mode.
 */
export function addFloat32(a: number, b: number, options?: Float32Options): number {
  // Rounding first to fp64 and then to fp32 is innocuous for + to nearest, since 53 ≥ 2·24 + 2
  // (Figueroa, "When is double rounding innocuous?", 1995); subnormal sums are exact.
  if (options === undefined) return Math.fround(a + b);
  const rounding = options.rounding ?? 'nearest-even';
  if (options.flushToZero === true)
    return addRoundedFlushing(flushOperand(a), flushOperand(b), rounding);
  return rounding === 'nearest-even' ? Math.fround(a + b) : addRounded(a, b, rounding);
}

/** The fp32 difference a − b: `addFloat32` of a and −b, in every mode and for every special value. */
export function subtractFloat32(a: number, b: number, options?: Float32Options): number {
  if (options === undefined) return Math.fround(a - b);
  return addFloat32(a, -b, options);
}

/** a + b rounded once to fp32, for fp64 numbers whose fp64 sum and error are exact. */
function addRounded(a: number, b: number, rounding: RoundingMode): number {
  const sum = a + b;
  if (sum === 0) return zeroSum(a, b, rounding);
  return roundSumToFloat32(sum, sumError(a, b, sum), rounding);
}

/** As `addRounded`, with tiny results flushed to zero. */
function addRoundedFlushing(a: number, b: number, rounding: RoundingMode): number {
  const sum = a + b;
  if (sum === 0) return zeroSum(a, b, rounding);
  return roundSumToFloat32FlushingToZero(sum, sumError(a, b, sum), rounding);
}

/**
 * The fp32 product of two fp32 values, rounded once from the exact product: PTX
 * `mul{.rnd}{.ftz}.f32`.
 *
 * Operands must be fp32 values; this is not checked. Default: nearest even, subnormals kept. A zero
 * or flushed product has the exclusive or of the signs in every mode; 0 · ∞ is NaN; overflow goes to
 * infinity or the largest finite value as the mode demands. Throws a RequestError for an unknown
 * rounding mode.
 */
export function multiplyFloat32(a: number, b: number, options?: Float32Options): number {
  // The fp64 product is exact: 24 + 24 ≤ 53 bits, and exponents from −298 to 255.
  if (options === undefined) return Math.fround(a * b);
  const rounding = options.rounding ?? 'nearest-even';
  return options.flushToZero === true
    ? roundSumToFloat32FlushingToZero(flushOperand(a) * flushOperand(b), 0, rounding)
    : roundSumToFloat32(a * b, 0, rounding);
}

/**
 * The fp32 value of a·b + c for fp32 values, rounded once from the exact result: PTX
 * `fma.rnd{.ftz}.f32`.
 *
 * Operands must be fp32 values; this is not checked. Default: nearest even, subnormals kept. A
 * result that is exactly zero by cancellation is +0, or −0 when rounding down; 0 · ∞ and ∞ − ∞ are
 * NaN; overflow goes to infinity or the largest finite value as the mode demands. With flushing, the
 * three operands and the result are flushed, the product never. Throws a RequestError for an unknown
 * rounding mode.
 */
export function fusedMultiplyAddFloat32(
  a: number,
  b: number,
  c: number,
  options?: Float32Options,
): number {
  // The fp64 product is exact (24 + 24 ≤ 53 bits), so the fp64 sum is the only rounding before fp32.
  if (options === undefined) return addToNearest(a * b, c);
  const rounding = options.rounding ?? 'nearest-even';
  if (options.flushToZero === true) {
    return addRoundedFlushing(flushOperand(a) * flushOperand(b), flushOperand(c), rounding);
  }
  return rounding === 'nearest-even' ? addToNearest(a * b, c) : addRounded(a * b, c, rounding);
}

function addToNearest(product: number, c: number): number {
  const sum = product + c;
  const nearest = Math.fround(sum);
  // Rounding fp64 to fp32 errs only from a midpoint that the fp64 sum was rounded to.
  return isFloat32Midpoint(sum, nearest)
    ? roundSumToFloat32(sum, sumError(product, c, sum), 'nearest-even')
    : nearest;
}
