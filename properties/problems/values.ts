import type { PlainProblem } from './plain-problem.js';
import type { Sizes } from './sizes.js';

/** A stream of random numbers, the same for the same seed. */
export interface RandomValues {
  /** In [0, 1), a multiple of 2^-32. */
  uniform(): number;
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  /** From the standard normal distribution. */
  normal(): number;
  /** 1 or −1. */
  sign(): number;
}

/**
 * Random numbers from a 32-bit seed: a Weyl sequence with the finalizer of MurmurHash3, Gaussian by
 * Box and Muller. For test data, not for statistics of many dimensions.
 */
export function randomValues(seed: number): RandomValues {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
    return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
  };
  return {
    uniform,
    integer: (min, max) => min + Math.floor(uniform() * (max - min + 1)),
    normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()),
    sign: () => (uniform() < 0.5 ? 1 : -1),
  };
}

/** Values of Q, K and V before they are rounded to the format, each row-major of rank 4. */
export interface ProblemValues {
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly v: Float64Array;
}

/** An array with the value of each index. */
export function fill(length: number, value: (index: number) => number): Float64Array {
  const values = new Float64Array(length);
  for (let i = 0; i < length; i++) values[i] = value(i);
  return values;
}

/** Elements of Q. */
export function queryLength({ batch, kvHeads, groupSize, queries, qkDim }: Sizes): number {
  return batch * kvHeads * groupSize * queries * qkDim;
}

/** Elements of K. */
export function keyLength({ batch, kvHeads, keys, qkDim }: Sizes): number {
  return batch * kvHeads * keys * qkDim;
}

/** Elements of V. */
export function valueLength({ batch, kvHeads, keys, vDim }: Sizes): number {
  return batch * kvHeads * keys * vDim;
}

/** Every element of Q, K and V from a function of its tensor, Q first and V last. */
export function drawnValues(
  sizes: Sizes,
  q: (index: number) => number,
  k: (index: number) => number,
  v: (index: number) => number,
): ProblemValues {
  return {
    q: fill(queryLength(sizes), q),
    k: fill(keyLength(sizes), k),
    v: fill(valueLength(sizes), v),
  };
}

/** Standard normal, each tensor times its own factor. */
export function normalValues(
  sizes: Sizes,
  random: RandomValues,
  { q = 1, k = 1, v = 1 }: { q?: number; k?: number; v?: number } = {},
): ProblemValues {
  return drawnValues(
    sizes,
    () => q * random.normal(),
    () => k * random.normal(),
    () => v * random.normal(),
  );
}

/** One kv head of one batch member: its rows of Q, those of all its query heads, and of K and V. */
interface HeadRows {
  /** Its number, batch by batch. */
  readonly head: number;
  readonly firstQuery: number;
  readonly queries: number;
  readonly firstKey: number;
  readonly keys: number;
}

/** Every kv head of every batch member with its rows, counted over the whole tensors. */
export function headRows({ batch, kvHeads, groupSize, queries, keys }: Sizes): HeadRows[] {
  const headQueries = groupSize * queries;
  return Array.from({ length: batch * kvHeads }, (_, head) => ({
    head,
    firstQuery: head * headQueries,
    queries: headQueries,
    firstKey: head * keys,
    keys,
  }));
}

/** One row of a tensor, as a view. */
export function rowOf(values: Float64Array, row: number, dim: number): Float64Array {
  return values.subarray(row * dim, (row + 1) * dim);
}

/** Whether two rows have equal elements; zeros of either sign are equal. */
export function equalRows(a: Float64Array, b: Float64Array): boolean {
  return a.every((x, c) => x === b[c]);
}

/** The largest magnitude; 0 of no values, NaN where there is one. */
export function largestMagnitude(values: Float64Array): number {
  return values.reduce((largest, x) => Math.max(largest, Math.abs(x)), 0);
}

/** Whether every element of V passes a test. */
export function everyValue(test: (x: number) => boolean): (plain: PlainProblem) => boolean {
  return ({ values }) => values.v.every(test);
}

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
