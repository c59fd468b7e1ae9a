import type { AttentionReference } from '../../../oracles/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { headRows } from '../parts/head-rows.js';
import { referenceRows } from '../parts/reference-rows.js';

/** A block of queries of one head as a problem of its own, and where it stands. */
export interface QueryBlock {
  readonly head: number;
  readonly firstRow: number;
  readonly rows: number;
  readonly problem: Problem;
  readonly reference: AttentionReference;
}

/** Queries [firstRow, firstRow + rows) of a head, as `headRows` takes them. Shares memory with the problem. */
export function cutBlock(
  problem: Problem,
  reference: AttentionReference,
  head: number,
  firstRow: number,
  rows: number,
): QueryBlock {
  const { shape } = reference;
  const cut = headRows(problem, shape, head, firstRow, rows);
  const part = referenceRows(reference, problemShape(cut), head * shape.queries + firstRow);
  return { head, firstRow, rows, problem: cut, reference: part };
}
