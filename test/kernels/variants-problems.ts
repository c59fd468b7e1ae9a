import { findKernelModel } from '../../kernels/index.js';
import { decodeToFloat64, formats, storageOf, type FormatName } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { tensor } from '../setup/problems.js';

/** With this scale, scale · log2 e is exactly 1 in fp32: weights are 2^(score − maximum). */
export const binaryScale = Math.LN2;

/** A tensor [heads, rows, dim] of values that the format should hold. */
export function tensorOf(
  format: FormatName,
  shape: readonly [number, number, number],
  value: (head: number, row: number, column: number) => number,
): Tensor {
  const [, rows, dim] = shape;
  return tensor(format, shape, (i) =>
    value(Math.floor(i / (rows * dim)), Math.floor(i / dim) % rows, i % dim),
  );
}

export interface ScoredProblem {
  readonly queries: number;
  readonly keys: number;
  /** The raw score of query and key, a product of two numbers of the format. */
  readonly query?: (row: number) => number;
  readonly key?: (row: number) => number;
  readonly value?: (row: number, column: number) => number;
  readonly vDim?: number;
  readonly format?: FormatName;
}

/** One head in which query i and key j have the score query(i)·key(j), in units of log2. */
export function scoredProblem(scored: ScoredProblem, changes: Partial<Problem> = {}): Problem {
  const { queries, keys, format = 'bf16', vDim = 8 } = scored;
  const { query = () => 1, key = () => 0, value = () => 1 } = scored;
  return {
    q: tensorOf(format, [1, queries, 16], (_, row, c) => (c === 0 ? query(row) : 0)),
    k: tensorOf(format, [1, keys, 16], (_, row, c) => (c === 0 ? key(row) : 0)),
    v: tensorOf(format, [1, keys, vDim], (_, row, c) => value(row, c)),
    scale: binaryScale,
    causal: false,
    window: null,
    softcap: null,
    ...changes,
  };
}

/** A problem without structure: the same for the same sizes. */
export function wavyProblem(
  [heads, kvHeads, queries, keys]: readonly [number, number, number, number],
  changes: Partial<Problem> = {},
  format: FormatName = 'bf16',
): Problem {
  const dim = 16;
  const wave = (seed: number) => (head: number, row: number, column: number) =>
    2 * Math.sin(seed + 5.3 * head + 1.7 * row + 0.61 * column * (row + 1));
  return {
    q: tensorOf(format, [heads, queries, dim], wave(1)),
    k: tensorOf(format, [kvHeads, keys, dim], wave(2)),
    v: tensorOf(format, [kvHeads, keys, dim], wave(3)),
    scale: 1 / Math.sqrt(dim),
    causal: false,
    window: null,
    softcap: null,
    ...changes,
  };
}

export interface Run {
  /** [rows × vDim] */
  readonly out: Float64Array;
  readonly lse: number[];
  /** Everything as bits. */
  readonly bits: { readonly out: number[]; readonly lse: number[] };
  readonly counters: Readonly<Record<string, number>>;
}

/** The fa4 model on a problem, tile by tile. */
export function runFa4(problem: Problem, settings: Readonly<Record<string, string>> = {}): Run {
  const kernel = findKernelModel('fa4').prepare(problem, new Map(Object.entries(settings)));
  const pieces = Array.from({ length: kernel.pieces }, (_, piece) => kernel.run(piece));
  const out = pieces.flatMap((piece) => [...piece.out]);
  const lse = pieces.flatMap((piece) => [...piece.lse]);
  const counters: Record<string, number> = {};
  for (const piece of pieces)
    for (const [name, count] of Object.entries(piece.counters))
      counters[name] = (counters[name] ?? 0) + count;
  const format = formats[kernel.outFormat];
  return {
    out: decodeToFloat64(storageOf(format, Uint16Array.from(out)), format),
    lse,
    bits: { out, lse: [...new Uint32Array(Float32Array.from(lse).buffer)] },
    counters,
  };
}

/** The model with a variant, on the same problem and with the same settings. */
export function runVariant(
  id: string,
  problem: Problem,
  settings: Readonly<Record<string, string>> = {},
): Run {
  return runFa4(problem, { ...settings, variant: id });
}
