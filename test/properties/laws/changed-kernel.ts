import { expect } from 'vitest';
import { type AttentionKernel, type LawId } from '../../../properties/index.js';
import { type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { tryLaw, variedProblem } from './try-law.js';

export const upTo = (count: number, first = 0) =>
  Array.from({ length: count }, (_, i) => first + i);
export const sizes = {
  batch: 1,
  heads: 2,
  kvHeads: 1,
  queries: 2,
  keys: 5,
  dim: 2,
  vDim: 2,
} as const;
export const problem = variedProblem({}, sizes);
export const stored = (data: Float64Array, ...shape: number[]): Tensor => ({
  format: 'fp64',
  shape,
  data,
});

export type Changed = Readonly<{ out: Float64Array; lse: Float64Array }>;

/** Attention by definition, in fp64, changed in place in some run. */
export function changedKernel(
  change: (of: Changed, run: number, posed: Problem) => void,
): AttentionKernel {
  let runs = 0;
  return (posed) => {
    const { out, lse } = definedAttention(posed);
    change({ out, lse }, runs++, posed);
    const { batch, heads, queries, vDim } = problemShape(posed);
    return {
      out: stored(out, batch, heads, queries, vDim),
      lse: stored(lse, batch, heads, queries),
    };
  };
}

/** A run of attention by definition, in fp64. */
export function runOf(posed: Problem) {
  const { out, lse } = definedAttention(posed);
  const shape = problemShape(posed);
  const outputs = {
    out: stored(out, shape.batch, shape.heads, shape.queries, shape.vDim),
    lse: stored(lse, shape.batch, shape.heads, shape.queries),
  };
  return { configuration: null, problem: posed, shape, outputs, out, lse };
}
export const promises = { premises: () => ({}) };

/** That a law holds with a change of 0.99 of a limit, and not with 1.01. */
export async function expectLimit(
  id: LawId,
  choice: number,
  limit: number,
  change: (of: Changed, by: number, run: number) => void,
) {
  expect(limit).toBeGreaterThan(0);
  const at = async (factor: number) => {
    const kernel = changedKernel((of, run) => change(of, factor * limit, run));
    return (await tryLaw(id, { problem, choice }, { kernel })).status;
  };
  expect([await at(0.99), await at(1.01)]).toEqual(['held', 'violated']);
}
