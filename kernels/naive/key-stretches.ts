import { clipRanges, type KeyRange } from '../../src/problem/index.js';

/** Keys of a row that are multiplied at once, by one row after the other: those of 64 rows are in a cache. */
const stretchKeys = 64;

/** A stretch of the keys of a block that a row sees. */
export interface KeyStretch {
  /** The block. */
  readonly first: number;
  readonly count: number;
  readonly row: number;
  /** Number of the first key of the stretch among those that the row sees. */
  readonly at: number;
  /** The first key of the stretch, in the block. */
  readonly from: number;
  readonly keys: number;
}

/**
 * Visits the keys that some rows see in one block of keys after the other, and within it by stretches of at most 64 keys,
 * all but the last of a range a multiple of 4.
 *
 * @param ranges of the keys that each row sees
 * @param keys number of all keys; a block has `blockKeys` of them
 */
export function forEachStretch(
  ranges: readonly (readonly KeyRange[])[],
  keys: number,
  blockKeys: number,
  visit: (stretch: KeyStretch) => void,
): void {
  const met = ranges.map(() => 0);
  for (let first = 0; first < keys; first += blockKeys) {
    const count = Math.min(blockKeys, keys - first);
    const clipped = ranges.map((ofRow) => clipRanges(ofRow, first, first + count));
    const most = clipped.reduce((count, ofRow) => Math.max(count, ofRow.length), 0);
    for (let index = 0; index < most; index++) {
      const ofRows = clipped.map((ofRow) => ofRow[index] ?? { begin: 0, end: 0 });
      const longest = ofRows.reduce((keys, { begin, end }) => Math.max(keys, end - begin), 0);
      for (let done = 0; done < longest; done += stretchKeys)
        ofRows.forEach(({ begin, end }, row) => {
          const keys = Math.min(stretchKeys, end - begin - done);
          if (keys <= 0) return;
          visit({ first, count, row, at: met[row], from: begin + done - first, keys });
          met[row] += keys;
        });
    }
  }
}
