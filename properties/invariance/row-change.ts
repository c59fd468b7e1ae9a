import { formats, ulp, type FormatName } from '../../src/formats/index.js';
import { isSameResult, type RunResults } from '../laws/index.js';

/** How the results of a quantity changed. */
export interface QuantityChange {
  /** Numbers that differ, and those compared. */
  readonly differing: number;
  readonly compared: number;
  /**
   * The largest difference, in ulps of the quantity's format at the larger of the two numbers; null where none differs,
   * or one that does is not finite.
   */
  readonly ulps: number | null;
}

/** A row among those compared. */
export interface RowAt {
  /** Counted over [batch, heads]. */
  readonly head: number;
  readonly query: number;
}

/** How the rows of two runs differ. */
export interface RowChange {
  /** Rows in which O or the LSE differs, head by head. */
  readonly rows: readonly RowAt[];
  readonly comparedRows: number;
  readonly out: QuantityChange;
  /** Null where one of the runs has no LSE. */
  readonly lse: QuantityChange | null;
}

/** Results of some rows, and the formats that they came in. */
export interface FormattedResults extends RunResults {
  readonly formats: { readonly out: FormatName; readonly lse: FormatName | null };
}

function changeOf(
  before: Float64Array,
  after: Float64Array,
  format: FormatName,
  note: (index: number) => void,
): QuantityChange {
  let differing = 0;
  let ulps = 0;
  for (let i = 0; i < before.length; i++) {
    const [a, b] = [before[i], after[i]];
    if (isSameResult(a, b)) continue;
    differing++;
    note(i);
    const unit = ulp(formats[format], Math.max(Math.abs(a), Math.abs(b)));
    ulps = Math.max(ulps, Math.abs(a - b) / unit);
  }
  const isCounted = differing > 0 && Number.isFinite(ulps);
  return { differing, compared: before.length, ulps: isCounted ? ulps : null };
}

/**
 * How the same rows of two runs differ to the bit; null where they do not. As in the laws, signs of zeros and
 * payloads of NaNs do not count, and the LSE is compared where both have one.
 */
export function rowChange(before: FormattedResults, after: FormattedResults): RowChange | null {
  const { vDim } = before.shape;
  const rows = new Set<number>();
  const { formats: names } = before;
  const out = changeOf(before.out, after.out, names.out, (i) => rows.add(Math.floor(i / vDim)));
  const lse =
    before.lse === null || after.lse === null || names.lse === null
      ? null
      : changeOf(before.lse, after.lse, names.lse, (row) => rows.add(row));
  if (rows.size === 0) return null;
  const { batch, heads, queries } = before.shape;
  const places = [...rows]
    .sort((a, b) => a - b)
    .map((row) => ({ head: Math.floor(row / queries), query: row % queries }));
  return { rows: places, comparedRows: batch * heads * queries, out, lse };
}
