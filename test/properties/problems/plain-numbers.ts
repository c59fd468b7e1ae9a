import type { RegimeName } from '../../../properties/index.js';
import type { PlainProblem } from '../../../properties/problems/plain-problem.js';
import { regimes } from '../../../properties/problems/regimes/index.js';
import { type FormatName } from '../../../src/formats/index.js';
import type { ProblemFeatures } from '../../../src/problem/index.js';

export const tiling = { blockKeys: 4, threshold: 8 };
export const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Numbers of one problem: rows of Q, K and V of one head, or of several one behind the other. */
export interface Numbers {
  readonly q?: readonly number[];
  readonly k?: readonly number[];
  readonly v?: readonly number[];
  readonly dim?: number;
  readonly vDim?: number;
  readonly kvHeads?: number;
  readonly scale?: number;
  readonly format?: FormatName;
  readonly features?: ProblemFeatures;
}

/** A problem of these numbers: by default one query of 1, so that K are the raw scores, at scale 1. */
export function plainOf({
  q = [1],
  k = [1],
  v,
  dim = 1,
  vDim = 1,
  kvHeads = 1,
  ...rest
}: Numbers): PlainProblem {
  const { scale = 1, format = 'fp32', features } = rest;
  const keys = k.length / dim / kvHeads;
  const values = v ?? upTo(keys * vDim * kvHeads).map((i) => 1 + (i % 7) / 8);
  return {
    sizes: {
      batch: 1,
      kvHeads,
      groupSize: 1,
      queries: q.length / dim / kvHeads,
      keys,
      qkDim: dim,
      vDim,
    },
    formats: { q: format, k: format, v: format },
    values: { q: Float64Array.from(q), k: Float64Array.from(k), v: Float64Array.from(values) },
    scale,
    causal: false,
    window: null,
    softcap: null,
    features,
  };
}

export const holds = (name: RegimeName, numbers: Numbers) =>
  regimes[name].holds(plainOf(numbers), tiling);

/** The same of several problems. */
export const held = (name: RegimeName, ...all: readonly Numbers[]) =>
  all.map((numbers) => holds(name, numbers));
