import type { ProblemShape } from '../../problem/index.js';

/** Rows of one head that are measured by themselves; with the head null all rows of all heads. */
export interface Part {
  /** Counted over [batch, heads]. */
  readonly head: number | null;
  readonly firstRow: number;
  readonly rows: number;
}

/** Multiply-adds that take about a second: less is not worth another thread, nor smaller parts. */
const worthwhile = 2 ** 27;

/** Parts begin at tiles of the structure tests. */
const tileRows = 128;

/**
 * Divides a problem into parts that are measured apart; the same for a problem whatever measures them. A small problem
 * is one part.
 * @param isDivisible false where rows have something in common that takes all of them
 * @param effort multiply-adds that a part is to take at least
 */
export function planParts(
  shape: ProblemShape,
  isDivisible: boolean,
  effort = worthwhile,
): readonly Part[] {
  const { batch, heads, queries, keys, qkDim, vDim } = shape;
  const ofRow = keys * (qkDim + vDim);
  const all = batch * heads * queries;
  if (!isDivisible || all * ofRow <= effort) return [{ head: null, firstRow: 0, rows: all }];
  const size = tileRows * Math.ceil(effort / ofRow / tileRows);
  const parts: Part[] = [];
  for (let head = 0; head < batch * heads; head++)
    for (let firstRow = 0; firstRow < queries; firstRow += size)
      parts.push({ head, firstRow, rows: Math.min(size, queries - firstRow) });
  return parts;
}

/** The first of a part's rows, counted over [batch, heads, queries]. */
export function firstRowOf({ head, firstRow }: Part, { queries }: ProblemShape): number {
  return head === null ? 0 : head * queries + firstRow;
}

/** A result about rows of a head. */
interface Placed {
  readonly head: number;
  readonly firstRow: number;
  readonly lastRow: number;
}

/** Results of a part with places as they are in the whole problem. */
export function placedInWhole<T extends Placed>(
  results: readonly T[],
  { head, firstRow }: Part,
): T[] {
  if (head === null) return [...results];
  return results.map((result) => ({
    ...result,
    head,
    firstRow: result.firstRow + firstRow,
    lastRow: result.lastRow + firstRow,
  }));
}

/** The sizes of a part of a problem. */
export function partShape(shape: ProblemShape, { head, rows }: Part): ProblemShape {
  if (head === null) return shape;
  return { ...shape, batch: 1, heads: 1, kvHeads: 1, groupSize: 1, queries: rows };
}
