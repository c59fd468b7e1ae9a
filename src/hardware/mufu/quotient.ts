import { bitsOfFloat32, float32Of, multiplyFloat32 } from '../../arith/index.js';
import { rcpApproxFtz } from './rcp.js';

/** The form of a division by the special function unit's reciprocal. */
export interface ApproximateDivision {
  /** `div.full`, accurate for every divisor; otherwise `div.approx`. */
  readonly isFull: boolean;
  /** `.ftz`: subnormal operands and results become zero. */
  readonly flushes: boolean;
}

function multiply(a: number, b: number, flushes: boolean): number {
  return multiplyFloat32(a, b, flushes ? { flushToZero: true } : undefined);
}

/** The special function unit's reciprocal, from a number to a number. */
function reciprocal(value: number): number {
  return float32Of(rcpApproxFtz(bitsOfFloat32(value)));
}

/** Divisor beyond which the unit's reciprocal is subnormal, and the unit flushes it. */
const largestDivisor = 2 ** 126;
const smallestNormal = 2 ** -126;

/** The power of two that brings a divisor into the range in which the unit's reciprocal is accurate. */
function scaleOf(divisor: number, { isFull, flushes }: ApproximateDivision): number {
  const magnitude = Math.abs(divisor);
  if (isFull && magnitude > largestDivisor) return 0.25;
  return !flushes && magnitude < smallestNormal ? 2 ** 24 : 1;
}

/**
 * A function that divides fp32 numbers by the fp32 number b as `div.full.f32` and `div.approx.f32` do: a times the unit's
 * reciprocal of b, both scaled alike; a scale of 1 is left out. The multiplications are those that ptxas 12.8 issues for sm_90,
 * equal to an H200 and an H100.
 */
export function dividerByReciprocal(b: number, form: ApproximateDivision): (a: number) => number {
  const { flushes } = form;
  const scale = scaleOf(b, form);
  if (scale === 1) {
    const inverse = reciprocal(b);
    return (a) => multiply(a, inverse, flushes);
  }
  const inverse = reciprocal(multiply(b, scale, flushes));
  return (a) => multiply(inverse, multiply(a, scale, flushes), flushes);
}

/** a / b of fp32 numbers: see `dividerByReciprocal`. */
export function divideByReciprocal(a: number, b: number, form: ApproximateDivision): number {
  return dividerByReciprocal(b, form)(a);
}
