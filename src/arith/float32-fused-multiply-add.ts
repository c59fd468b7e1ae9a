import type { RoundingMode } from '../formats/index.js';
import { flushOperand, roundSumToFloat32FlushingToZero } from './float32-flush-to-zero.js';
import type { Float32Options } from './float32-options.js';
import { isFloat32Midpoint, roundSumToFloat32 } from './float32-rounding.js';
import { sumError } from './two-sum.js';
import { zeroSum } from './zero-sum.js';

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

function addRounded(product: number, c: number, rounding: RoundingMode): number {
  const sum = product + c;
  if (sum === 0) return zeroSum(product, c, rounding);
  return roundSumToFloat32(sum, sumError(product, c, sum), rounding);
}

function addRoundedFlushing(product: number, c: number, rounding: RoundingMode): number {
  const sum = product + c;
  if (sum === 0) return zeroSum(product, c, rounding);
  return roundSumToFloat32FlushingToZero(sum, sumError(product, c, sum), rounding);
}
