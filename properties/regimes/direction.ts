import type { RandomValues } from '../random-values.js';
import { fill } from './tensor-values.js';

/** A random direction, of length 1. */
export function randomDirection(dim: number, random: RandomValues): Float64Array {
  const values = fill(dim, random.normal);
  const length = Math.hypot(...values);
  return values.map((x) => x / length);
}

/** Adds a multiple of a vector to one row of a tensor. */
export function addToRow(
  rows: Float64Array,
  row: number,
  vector: Float64Array,
  strength: number,
): void {
  vector.forEach((x, c) => (rows[row * vector.length + c] += strength * x));
}
