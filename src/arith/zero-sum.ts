import type { RoundingMode } from '../formats/index.js';

/**
 * The zero that two addends of exact sum zero give: the addends' own when they are zeros of one
 * sign, else −0 when rounding down and +0 otherwise (IEEE 754-2019, 6.3).
 */
export function zeroSum(a: number, b: number, rounding: RoundingMode): number {
  if (rounding !== 'down') return a + b;
  return Object.is(a, 0) && Object.is(b, 0) ? 0 : -0;
}
