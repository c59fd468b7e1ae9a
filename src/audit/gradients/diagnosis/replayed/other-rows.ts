import { decodeTensor } from '../../../../formats/index.js';
import { viewedRows, type ViewedRows } from '../../../rows/index.js';
import type { FailedGradients } from '../failed-gradients.js';

/** Rows that are read from others; rows beyond the last are the first. */
export function readFrom(values: Float64Array, columns: number, from: (row: number) => number) {
  const rows = values.length / columns;
  const made = new Float64Array(values.length);
  for (let row = 0; row < rows; row++) {
    const at = ((from(row) + rows) % rows) * columns;
    made.set(values.subarray(at, at + columns), row * columns);
  }
  return made;
}

/** A tensor that is read from other rows, in words, and which rows. */
export interface OtherRows {
  readonly words: string;
  readonly from: (row: number) => number;
}

/** Rows, heads and batch entries beside the own. */
export function neighbours(
  { batch, heads, rows }: { readonly batch: number; readonly heads: number; readonly rows: number },
  one: string,
): readonly OtherRows[] {
  const entry = heads * rows;
  const by = (distance: number, words: string): OtherRows => ({
    words,
    from: (row) => row + distance,
  });
  return [
    by(1, `of the next ${one}`),
    by(-1, `of the ${one} before`),
    ...(heads > 1 ? [by(rows, 'of the next head'), by(-rows, 'of the head before')] : []),
    ...(batch > 1 ? [by(entry, 'of another batch entry')] : []),
    ...(batch > 2 ? [by(-entry, 'of the batch entry before')] : []),
  ];
}

/** A memory that is read in the order of axes that it does not have. */
export type Layout = OtherRows & ViewedRows;

/** A row of [batch, heads, rows] in the memory of [batch, rows, heads], and the reverse. */
export function layouts({
  heads,
  rows,
}: {
  readonly heads: number;
  readonly rows: number;
}): readonly Layout[] {
  if (heads === 1 || rows === 1) return [];
  const [rowsFirst, headsFirst] = viewedRows(heads, rows);
  return [
    {
      words: 'written as [batch, rows, heads, columns] and read as [batch, heads, rows, columns]',
      ...rowsFirst,
    },
    {
      words: 'written as [batch, heads, rows, columns] and read as [batch, rows, heads, columns]',
      ...headsFirst,
    },
  ];
}

/** D of another dO, and of the O that was given, or of the exact one. */
export function deltaOf({ measured, forward: { out } }: FailedGradients, dout: Float64Array) {
  const { batch, heads, queries, vDim } = measured.shape;
  const own = out === null ? measured.reference.quantities.out.values : decodeTensor(out);
  return Float64Array.from({ length: batch * heads * queries }, (_, row) => {
    let sum = 0;
    for (let i = row * vDim; i < (row + 1) * vDim; i++) sum += dout[i] * own[i];
    return sum;
  });
}
