import type { AttentionReference, Progress } from '../../oracles/index.js';
import type { Problem } from '../problem.js';
import { forEachRowsBound, type KernelArithmetic } from './bounds/index.js';

/** The bounds of a whole problem, without the parts of the techniques. */
export interface ElementBounds {
  /** [batch, heads, queries, vDim]: worst case, systematic part, standard deviation of the rest. */
  readonly total: Float64Array;
  readonly systematic: Float64Array;
  readonly deviation: Float64Array;
  /** [batch, heads, queries]: the same of the LSE, natural logarithms, before it is stored. */
  readonly lse: {
    readonly total: Float64Array;
    readonly systematic: Float64Array;
    readonly deviation: Float64Array;
  };
}

/** Computes and keeps the bounds of every element and row: see `forEachRowsBound`. */
export function elementBounds(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  progress?: Progress,
): ElementBounds {
  const ofLength = (length: number) => ({
    total: new Float64Array(length),
    systematic: new Float64Array(length),
    deviation: new Float64Array(length),
  });
  const out = ofLength(reference.out.length);
  const lse = ofLength(reference.lse.length);
  const { vDim } = reference.shape;
  forEachRowsBound(
    problem,
    reference,
    arithmetic,
    (bound) => {
      for (const name of ['total', 'systematic', 'deviation'] as const) {
        out[name].set(bound.out[name].subarray(0, bound.rows * vDim), bound.firstRow * vDim);
        lse[name].set(bound.lse[name].subarray(0, bound.rows), bound.firstRow);
      }
    },
    progress,
  );
  return { ...out, lse };
}
