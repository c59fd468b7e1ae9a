import type { KeyRange } from '../key-ranges.js';

/** A row that does not see all keys of a tile between the first and the last that it sees. */
export interface InterruptedRow {
  readonly row: number;
  /** The ranges that it sees, in places of the tile. */
  readonly ranges: readonly KeyRange[];
}

/** The visibility of one tile of keys, beside the results that `maskTile` writes. */
export interface TileView {
  /** Whether any row sees a key of the tile. */
  readonly isSeen: boolean;
  /** Rows that see several ranges; empty if each sees one range of keys at most. */
  readonly interrupted: readonly InterruptedRow[];
}

const noRows: readonly InterruptedRow[] = [];

/** The index of the first range that ends after a key; their number if none does. */
function firstEndingBehind(ranges: readonly KeyRange[], key: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ranges[middle].end > key) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The keys of one tile that each of some rows sees. To `low` and `high` it writes the first place of the
 * tile that a row sees, and the one after the last: both 0 for a row that sees none, and for places
 * beyond the rows.
 * @param rows the ranges of keys of each row, as `Mask.ranges` gives them
 */
export function maskTile(
  rows: readonly (readonly KeyRange[])[],
  tile: KeyRange,
  low: Int32Array,
  high: Int32Array,
): TileView {
  let isSeen = false;
  let interrupted: InterruptedRow[] | null = null;
  for (let row = 0; row < low.length; row++) {
    low[row] = 0;
    high[row] = 0;
    if (row >= rows.length) continue;
    const ranges = rows[row];
    const first = firstEndingBehind(ranges, tile.begin);
    let behind = first;
    while (behind < ranges.length && ranges[behind].begin < tile.end) behind++;
    if (behind === first) continue;
    isSeen = true;
    low[row] = Math.max(ranges[first].begin - tile.begin, 0);
    high[row] = Math.min(ranges[behind - 1].end, tile.end) - tile.begin;
    if (behind === first + 1) continue;
    interrupted ??= [];
    interrupted.push({
      row,
      ranges: ranges.slice(first, behind).map(({ begin, end }) => ({
        begin: Math.max(begin, tile.begin) - tile.begin,
        end: Math.min(end, tile.end) - tile.begin,
      })),
    });
  }
  return { isSeen, interrupted: interrupted ?? noRows };
}

/** The range from the first key that any of some rows sees to the end of the last; begin = end = 0 if none does. */
export function spanOfRows(rows: readonly (readonly KeyRange[])[]): KeyRange {
  let begin = Infinity;
  let end = 0;
  for (const ranges of rows) {
    if (ranges.length === 0) continue;
    begin = Math.min(begin, ranges[0].begin);
    end = Math.max(end, ranges[ranges.length - 1].end);
  }
  return { begin: end === 0 ? 0 : begin, end };
}
