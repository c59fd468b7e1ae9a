import { formats, type RoundingMode } from '../formats/index.js';
import { roundSumToFloat32 } from './float32-rounding.js';

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
