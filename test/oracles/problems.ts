import { encodeFromFloat64, formats, type FormatName } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';

/** Rows of one head of a tensor. */
export type Rows = readonly (readonly number[])[];

/** A tensor of rank 4 from [batch][head][row][column]; every head has the same number of rows. */
export function tensor(
  format: FormatName,
  heads: readonly (readonly Rows[])[],
  dim: number,
): Tensor {
  const shape = [heads.length, heads[0]?.length ?? 0, heads[0]?.[0]?.length ?? 0, dim];
  return {
    format,
    shape,
    data: encodeFromFloat64(formats[format], Float64Array.from(heads.flat(3))),
  };
}

/** Settings that a problem of `singleHead` may change; the rest is plain attention at scale 1. */
export type Settings = Partial<Pick<Problem, 'scale' | 'causal' | 'window' | 'softcap'>>;

/** A problem of one batch and one head from its rows. Dims come from the first rows. */
export function singleHead(
  format: FormatName,
  rows: { readonly q: Rows; readonly k: Rows; readonly v: Rows },
  settings: Settings = {},
): Problem {
  const qkDim = rows.q[0]?.length ?? rows.k[0]?.length ?? 1;
  const vDim = rows.v[0]?.length ?? 1;
  return {
    q: tensor(format, [[rows.q]], qkDim),
    k: tensor(format, [[rows.k]], qkDim),
    v: tensor(format, [[rows.v]], vDim),
    scale: 1,
    causal: false,
    window: null,
    softcap: null,
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
