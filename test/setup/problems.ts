/**
 * The problems of the tests: from functions of an element's place, from rows by hand, and the streams of
 * numbers that fill them. A test that needs others says how they differ, on top of these.
 */
import { encodeFromFloat64, formats, type FormatName } from '../../src/formats/index.js';
import type { Problem, Sequence, Tensor } from '../../src/problem/index.js';

/** The settings of a problem beside its tensors. */
export type Settings = Partial<Pick<Problem, 'scale' | 'causal' | 'window' | 'softcap'>>;

const plainSettings = { causal: false, window: null, softcap: null } as const;

/** A tensor from a function of each element's index, rounded to the format. */
export function tensor(
  format: FormatName,
  shape: readonly number[],
  value: (index: number) => number,
): Tensor {
  const length = shape.reduce((a, b) => a * b, 1);
  const values = Float64Array.from({ length }, (_, index) => value(index));
  return { format, shape, data: encodeFromFloat64(formats[format], values) };
}

/** What the tensors of a problem are, but for their values. */
export interface ProblemFrame {
  /** Default 1; null for tensors of rank 3, without batches. */
  readonly batch?: number | null;
  /** Default 1. */
  readonly heads?: number;
  /** Default as many as heads. */
  readonly kvHeads?: number;
  readonly queries: number;
  readonly keys: number;
  /** Of Q and K, and of V where `vDim` is left out. */
  readonly dim: number;
  readonly vDim?: number;
  /** Default bf16. */
  readonly format?: FormatName;
}

/** The value of an element from its index in the tensor, row-major. */
export type Fill = (index: number) => number;

/** A function for each tensor. */
export type Fills = Readonly<Record<'q' | 'k' | 'v', Fill>>;

/**
 * A problem from functions of the elements' indices, called for Q from its first element to its last, then
 * for K, then for V; one function for all may be a stream of numbers. The scale is 1/√dim and there is no
 * mask, but for the changes.
 */
export function filledProblem(
  frame: ProblemFrame,
  fill: Fill | Fills,
  changes: Partial<Problem> = {},
): Problem {
  const { batch = 1, heads = 1, kvHeads = heads, queries, keys, dim, vDim = dim } = frame;
  const { format = 'bf16' } = frame;
  const fills = typeof fill === 'function' ? { q: fill, k: fill, v: fill } : fill;
  const shape = (...dims: number[]) => (batch === null ? dims : [batch, ...dims]);
  return {
    q: tensor(format, shape(heads, queries, dim), fills.q),
    k: tensor(format, shape(kvHeads, keys, dim), fills.k),
    v: tensor(format, shape(kvHeads, keys, vDim), fills.v),
    scale: 1 / Math.sqrt(dim),
    ...plainSettings,
    ...changes,
  };
}

/** Rows of one head of a tensor. */
export type Rows = readonly (readonly number[])[];

/** A tensor of rank 4 from [batch][head][row][column]; every head has the same number of rows. */
export function tensorOfHeads(
  format: FormatName,
  heads: readonly (readonly Rows[])[],
  dim: number,
): Tensor {
  const values = heads.flat(3);
  const shape = [heads.length, heads[0]?.length ?? 0, heads[0]?.[0]?.length ?? 0, dim];
  return tensor(format, shape, (i) => values[i]);
}

/** A tensor of rank 4 of one batch and one head from its rows. */
export function tensorOfRows(format: FormatName, rows: Rows): Tensor {
  return tensorOfHeads(format, [[rows]], rows[0].length);
}

/** A problem of one batch and one head from its rows, at scale 1. Dims come from the first rows. */
export function singleHead(
  format: FormatName,
  rows: { readonly q: Rows; readonly k: Rows; readonly v: Rows },
  settings: Settings = {},
): Problem {
  const qkDim = rows.q[0]?.length ?? rows.k[0]?.length ?? 1;
  const vDim = rows.v[0]?.length ?? 1;
  return {
    q: tensorOfHeads(format, [[rows.q]], qkDim),
    k: tensorOfHeads(format, [[rows.k]], qkDim),
    v: tensorOfHeads(format, [[rows.v]], vDim),
    scale: 1,
    ...plainSettings,
    ...settings,
  };
}

/** One query and keys of dim 1 with the given scores (scale 1), and one value column. */
export function scoredKeys(
  format: FormatName,
  scores: readonly number[],
  values: readonly number[],
  settings: Settings = {},
): Problem {
  return singleHead(
    format,
    { q: [[1]], k: scores.map((score) => [score]), v: values.map((value) => [value]) },
    settings,
  );
}

/** Sequences of so many queries and keys, one behind the other. */
export function sequencesOf(
  sizes: readonly (readonly [queries: number, keys: number])[],
): Sequence[] {
  let [firstQuery, firstKey] = [0, 0];
  return sizes.map(([queries, keys]) => {
    const sequence = { firstQuery, queries, firstKey, keys };
    firstQuery += queries;
    firstKey += keys;
    return sequence;
  });
}

/** Numbers in [0, 1) of a linear congruential generator, the same for the same seed. */
export function uniformNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** About normal numbers: each the sum of twelve uniform ones less six. */
export function sumNormalNumbers(uniform: () => number): () => number {
  return () => {
    let sum = -6;
    for (let i = 0; i < 12; i++) sum += uniform();
    return sum;
  };
}

/** Normal numbers by Box and Muller's transform of uniform ones in [0, 1). */
export function boxMullerNumbers(uniform: () => number): () => number {
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Pseudorandom numbers in [−1, 1) by a multiplicative congruential generator. */
export function pseudorandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  };
}
