import { flushOperand, roundSumToFloat32FlushingToZero } from './float32-flush-to-zero.js';
import type { Float32Options } from './float32-options.js';
import { roundSumToFloat32 } from './float32-rounding.js';

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
