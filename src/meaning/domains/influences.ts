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
  // The last bits of an infinity are zeros, in all formats that have one.
  if ((trace.bits[value] & 3) !== 0) return false;
  const number = trace.numberOf(value);
  return number === Infinity || number === -Infinity;
}

/** Whether the same sets reach two stretches of `count` values of a list, one after another. */
export function areAlike(
  { withWeight, inStructure }: Influences,
  values: Uint32Array,
  [one, other]: readonly [number, number],
  count: number,
): boolean {
  for (let i = 0; i < count; i++) {
    const [x, y] = [values[one + i], values[other + i]];
    if (withWeight[x] !== withWeight[y] || inStructure[x] !== inStructure[y]) return false;
  }
  return true;
}
