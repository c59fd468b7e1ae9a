import { formats } from '../../../formats/index.js';
import { addFloat32 } from '../../../arith/index.js';

/** The NaN that fp32 arithmetic delivers for every NaN operand and invalid operation. */
export const canonicalNan = formats.fp32.canonicalNan;

// Written and read back within one call: they hold no state between calls.
const words = new Uint32Array(1);
const floats = new Float32Array(words.buffer);

/** The fp32 number with the bit pattern `bits`, from 0 to 2^32 − 1. */
export function float32Of(bits: number): number {
  words[0] = bits;
  return floats[0];
}

/** The bit pattern of an fp32 number, from 0 to 2^32 − 1; every NaN gives 0x7fffffff. */
export function bitsOf(value: number): number {
  if (value !== value) return canonicalNan;
  floats[0] = value;
  return words[0];
}

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
