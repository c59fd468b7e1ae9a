import type { DoubleDouble } from '../../../src/arith/index.js';
import {
  exactAttentionRow,
  type RealOf,
  type RowPlace,
} from '../../../src/meaning/contracts/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';

/** All rows of a problem. */
export function everyPlace(problem: Problem): readonly RowPlace[] {
  const { batch, heads, queries } = problemShape(problem);
  return Array.from({ length: batch * heads * queries }, (_, at) => ({
    batch: Math.floor(at / (heads * queries)),
    head: Math.floor(at / queries) % heads,
    row: at % queries,
  }));
}

/** The real values of a kernel with a factor of its own; its LSE is natural. */
export function realWith(problem: Problem, factor: DoubleDouble | null): RealOf {
  return (output, place, column) => {
    const { out, lse } = exactAttentionRow(problem, place, factor);
    return output === 'out' ? out[column] : lse;
  };
}
