import type { Trace } from '../trace/index.js';
import type { LabelSets } from './label-sets.js';

/** Which labels reach values, by their numbers, as sets. */
export interface Influences {
  readonly sets: LabelSets;
  /** The set of the labels that reach a value with weight. */
  readonly withWeight: Uint32Array;
  /** The set of the labels that reach it in the structure; some may reach it with weight besides. */
  readonly inStructure: Uint32Array;
}

/** Whether a value's bits are those of a zero, of either sign. */
export function isZero(trace: Trace, value: number): boolean {
  const bits = trace.bits[value];
  // A zero has one bit at most, its sign.
  return (bits & (bits - 1)) === 0 && trace.numberOf(value) === 0;
}

/** Whether a value's bits are those of an infinity. */
export function isInfinite(trace: Trace, value: number): boolean {
  const number = trace.numberOf(value);
  return number === Infinity || number === -Infinity;
}
