import { addFloat32 } from '../../arith/index.js';

/** Which of two fp32 numbers PTX's `min` and `max` choose. */
export interface ExtremumRule {
  readonly isMaximum: boolean;
  /** `.NaN`: a NaN wins; without it a NaN loses against a number. */
  readonly keepsNan: boolean;
  /** `.ftz`: subnormal operands count as zeros of their sign. */
  readonly flushToZero: boolean;
}

const flushing = { flushToZero: true } as const;

/** A subnormal fp32 number as the zero of its sign. */
export function flushed(value: number): number {
  return addFloat32(value, -0, flushing);
}

/**
 * `min` or `max` of two fp32 numbers by the rule; −0 counts as less than +0, and subnormals are kept
 * but for `flushToZero`. NaN when both operands are. Source: PTX ISA, instructions `min` and `max`.
 */
export function extremum(a: number, b: number, rule: ExtremumRule): number {
  const x = rule.flushToZero ? flushed(a) : a;
  const y = rule.flushToZero ? flushed(b) : b;
  const chosen = rule.isMaximum ? Math.max(x, y) : Math.min(x, y);
  if (chosen === chosen || rule.keepsNan) return chosen;
  return x === x ? x : y;
}
