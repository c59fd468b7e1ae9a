import { halfUlp, roundedNear, type OperandRounding } from './pair-arithmetic.js';

/** What rounding a number to the format of an operand does. */
export interface Rounded {
  /** At most; the rounding itself where it is certain, else 0; its variance where it is not. */
  worst: number;
  known: number;
  variance: number;
}

/**
 * The rounding of a number that is within `error` of x: Theorem 5 of docs/bounds.md. Where a factor may multiply it before,
 * its significand is not known, and the worst of its units counts.
 */
export function roundOperand(
  { format, units, largestUnit, times }: OperandRounding,
  x: number,
  error: number,
  rounded: Rounded,
): void {
  rounded.worst = 0;
  rounded.known = 0;
  rounded.variance = 0;
  if (format === null) return;
  const most = (Math.abs(x) + error) * (1 + 2 ** -20);
  if (!(most * largestUnit < format.maxFinite)) {
    rounded.worst = Infinity;
    return;
  }
  const half = halfUlp(format, most);
  if (units.length > 0 || times > 1) {
    let largest = half;
    for (const unit of units) largest = Math.max(largest, halfUlp(format, most * unit) / unit);
    // What is rounded again may be in the next binade by then.
    rounded.worst = times === 1 ? largest : 2 * times * largest * (1 + 2 ** -6);
    rounded.variance = (times * largest ** 2) / 3;
    return;
  }
  const known = roundedNear(format, x) - x;
  const distance = Math.abs(known);
  rounded.worst = Math.min(half, distance + error);
  if (distance + error < half) rounded.known = known;
  // What is left open though less than half an ulp moves it is beside a tie: off by its distance, up or down.
  else rounded.variance = error < half ? distance ** 2 : half ** 2 / 3;
}
