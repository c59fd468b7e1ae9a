import type { RoundingMode } from '../formats/index.js';
import { flushOperand, roundSumToFloat32FlushingToZero } from './float32-flush-to-zero.js';
import type { Float32Options } from './float32-options.js';
import { roundSumToFloat32 } from './float32-rounding.js';
import { sumError } from './two-sum.js';
import { zeroSum } from './zero-sum.js';

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
  return options.flushToZero === true
    ? addRoundedFlushing(flushOperand(a), flushOperand(b), rounding)
    : addRounded(a, b, rounding);
}

/** The fp32 difference a − b: `addFloat32` of a and −b, in every mode and for every special value. */
export function subtractFloat32(a: number, b: number, options?: Float32Options): number {
  if (options === undefined) return Math.fround(a - b);
  return addFloat32(a, -b, options);
}

function addRounded(a: number, b: number, rounding: RoundingMode): number {
  const sum = a + b;
  if (rounding === 'nearest-even') return Math.fround(sum);
  if (sum === 0) return zeroSum(a, b, rounding);
  return roundSumToFloat32(sum, sumError(a, b, sum), rounding);
}

function addRoundedFlushing(a: number, b: number, rounding: RoundingMode): number {
  const sum = a + b;
  if (sum === 0) return zeroSum(a, b, rounding);
  return roundSumToFloat32FlushingToZero(sum, sumError(a, b, sum), rounding);
}
