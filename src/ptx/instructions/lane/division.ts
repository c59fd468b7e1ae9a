import { bitsOfFloat32, float32Of, multiplyFloat32 } from '../../../arith/index.js';
import { rcpApproxFtz } from '../../../hardware/index.js';
import type { LaneInstruction } from '../lane-instruction.js';
import { type FamilyFacts, wordRow } from './row.js';

const flushing = { flushToZero: true } as const;

function multiply(a: number, b: number, isFlushing: boolean): number {
  return multiplyFloat32(a, b, isFlushing ? flushing : undefined);
}

/** The unit's reciprocal, from a number to a number. */
function reciprocal(value: number): number {
  return float32Of(rcpApproxFtz(bitsOfFloat32(value)));
}

/** Divisor beyond which the unit's reciprocal is subnormal, and the unit flushes it. */
const largestDivisor = 2 ** 126;
const smallestNormal = 2 ** -126;

/** The power of two that brings a divisor into the range in which the unit's reciprocal is accurate. */
function scaleOf(divisor: number, limits: { readonly isFull: boolean; readonly ftz: boolean }) {
  const magnitude = Math.abs(divisor);
  if (limits.isFull && magnitude > largestDivisor) return 0.25;
  return !limits.ftz && magnitude < smallestNormal ? 2 ** 24 : 1;
}

/** a times the unit's reciprocal of b, both scaled alike; a scale of 1 is left out. */
function divide(a: number, b: number, isFull: boolean, ftz: boolean): number {
  const [x, y] = [float32Of(a), float32Of(b)];
  const scale = scaleOf(y, { isFull, ftz });
  if (scale === 1) return bitsOfFloat32(multiply(x, reciprocal(y), ftz));
  const inverse = reciprocal(multiply(y, scale, ftz));
  return bitsOfFloat32(multiply(inverse, multiply(x, scale, ftz), ftz));
}

const sequence: FamilyFacts = {
  unit: 'mufu',
  evidence: 'published',
  source:
    'PTX ISA, Floating Point Instructions: div; the multiplications around rcp.approx.ftz.f32 are those that ptxas 12.8 issues for sm_90',
};

/** Division of fp32 by the special function unit's reciprocal: `div.full` and `div.approx`. */
export const approximateDivisions: readonly LaneInstruction[] = [true, false].flatMap((isFull) =>
  [false, true].map((ftz) =>
    wordRow(
      `div.${isFull ? 'full' : 'approx'}${ftz ? '.ftz' : ''}.f32`,
      32,
      [32, 32],
      (a, b) => divide(a, b, isFull, ftz),
      sequence,
    ),
  ),
);
