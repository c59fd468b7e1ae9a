import { levels, type AttentionReference, type Progress } from '../../oracles/index.js';
import type { Problem } from '../problem/index.js';
import {
  combinations,
  type CombinedBounds,
  createCombinedBounds,
  forEachRowsBound,
  internalBound,
  type KernelArithmetic,
  type KernelBound,
  outputRounding,
  type RowsBound,
} from './bounds/index.js';

/** Called with the bounds of the next rows. */
export type RowsBoundVisitor = (bound: RowsBound) => void;

/** The bounds of a whole problem, [batch, heads, queries, vDim], without the parts of the techniques. */
export interface ElementBounds extends CombinedBounds {
  /** [batch, heads, queries]: the same of the LSE, natural logarithms, before it is stored. */
  readonly lse: CombinedBounds;
  /** [batch, heads, queries]: rows of one number may err alike, others err independently. */
  readonly unit: Int32Array;
}

/**
 * Computes and keeps the bounds of every element and row: see `forEachRowsBound`. Rows whose inputs hold
 * infinities or NaNs, of which that says nothing, take the bound from `premises`, with the magnitude and
 * |O| for Σ w|v − O|, and no part of it is random.
 */
export function elementBounds(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  premises: KernelBound,
  { visit, progress }: { readonly visit?: RowsBoundVisitor; readonly progress?: Progress } = {},
): ElementBounds {
  const out = createCombinedBounds(reference.out.length);
  const lse = createCombinedBounds(reference.lse.length);
  const unit = new Int32Array(reference.lse.length);
  const { vDim } = reference.shape;
  forEachRowsBound(
    problem,
    reference,
    arithmetic,
    (bound) => {
      for (const name of combinations) {
        out[name].set(bound.out[name].subarray(0, bound.rows * vDim), bound.firstRow * vDim);
        lse[name].set(bound.lse[name].subarray(0, bound.rows), bound.firstRow);
      }
      unit.set(bound.unit.subarray(0, bound.rows), bound.firstRow);
      visit?.(bound);
    },
    progress,
  );
  reference.level.forEach((level, row) => {
    if (levels[level] !== 'special') return;
    const ofRow = premises.row(row);
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      const exact = reference.out[i];
      const magnitude = reference.magnitude[i];
      const inner = internalBound(ofRow, exact, magnitude, magnitude + Math.abs(exact));
      const half = outputRounding(arithmetic.outputFormat, exact, inner, arithmetic.outputRounding);
      out.total[i] = out.systematic[i] = inner + half + reference.outRadius[i];
      out.known[i] = out.deviation[i] = 0;
    }
    lse.total[row] = lse.systematic[row] = ofRow.lse;
    lse.known[row] = lse.deviation[row] = 0;
  });
  return { ...out, lse, unit };
}
