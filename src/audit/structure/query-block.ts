import type { AttentionReference } from '../../../oracles/index.js';
import { sliceRows } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';

/** A block of queries of one head as a problem of its own, and where it stands. */
export interface QueryBlock {
  readonly head: number;
  readonly firstRow: number;
  readonly rows: number;
  readonly problem: Problem;
  readonly reference: AttentionReference;
}

/**
 * Queries [firstRow, firstRow + rows) of a head with the keys that any of them sees. The mask keeps
 * its meaning: limits count from the diagonal, which is aligned to the last query and key, so they
 * move by what was cut off there. Shares memory with the problem. Null when no key is left.
 */
export function cutBlock(
  problem: Problem,
  reference: AttentionReference,
  head: number,
  firstRow: number,
  rows: number,
): QueryBlock | null {
  const { shape } = reference;
  const { heads, kvHeads, groupSize, queries, keys, vDim } = shape;
  const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  const { left, right } = problem.window ?? { left: -1, right: -1 };
  const reach = problem.causal ? 0 : right;
  // The last query sees keys up to its diagonal and `reach` beyond.
  const lastDiagonal = firstRow + rows - 1 + keys - queries;
  const seen = reach < 0 ? keys : Math.min(keys, lastDiagonal + reach + 1);
  if (seen <= 0) return null;
  const shift = lastDiagonal + 1 - seen;
  const cut: Problem = {
    ...problem,
    q: sliceRows(problem.q, head * queries + firstRow, rows),
    k: sliceRows(problem.k, kv * keys, seen),
    v: sliceRows(problem.v, kv * keys, seen),
    causal: false,
    window:
      left < 0 && reach < 0
        ? null
        : { left: left < 0 ? -1 : left - shift, right: reach < 0 ? -1 : reach + shift },
  };
  const first = head * queries + firstRow;
  const ofRows = <T extends Float64Array | Uint8Array>(values: T, dim: number) =>
    values.subarray(first * dim, (first + rows) * dim) as T;
  const { out, lse } = reference.quantities;
  const part: AttentionReference = {
    shape: problemShape(cut),
    quantities: {
      out: {
        values: ofRows(out.values, vDim),
        radius: ofRows(out.radius, vDim),
        magnitude: ofRows(out.magnitude, vDim),
      },
      lse: { values: ofRows(lse.values, 1), radius: ofRows(lse.radius, 1), magnitude: null },
    },
    maximum: ofRows(reference.maximum, 1),
    denominator: ofRows(reference.denominator, 1),
    level: ofRows(reference.level, 1),
  };
  return { head, firstRow, rows, problem: cut, reference: part };
}
