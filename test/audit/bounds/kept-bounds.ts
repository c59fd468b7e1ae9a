import { techniques } from '../../../kernels/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import {
  combinations,
  forEachRowsBound,
  type Bounds,
  type KernelArithmetic,
} from '../../../src/audit/bounds/index.js';
import { createBounds } from '../../../src/audit/bounds/rows-bound.js';
import type { Problem } from '../../../src/problem/index.js';

/** The bounds of every element and every row of a problem. */
export interface KeptBounds {
  readonly out: Bounds;
  readonly lse: Bounds;
  readonly unit: Int32Array;
}

function keep(all: Bounds, some: Bounds, first: number, length: number): void {
  for (const name of techniques)
    all.techniques[name].set(some.techniques[name].subarray(0, length), first);
  for (const name of combinations) all[name].set(some[name].subarray(0, length), first);
}

/** Everything that `forEachRowsBound` visits. */
export function keepBounds(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
): KeptBounds {
  const out = createBounds(reference.quantities.out.values.length);
  const lse = createBounds(reference.quantities.lse.values.length);
  const unit = new Int32Array(reference.quantities.lse.values.length);
  const { vDim } = reference.shape;
  forEachRowsBound(problem, reference, arithmetic, (bound) => {
    keep(out, bound.quantities.out, bound.firstRow * vDim, bound.rows * vDim);
    keep(lse, bound.quantities.lse, bound.firstRow, bound.rows);
    unit.set(bound.unit.subarray(0, bound.rows), bound.firstRow);
  });
  return { out, lse, unit };
}
