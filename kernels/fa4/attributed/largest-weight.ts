import { tileQueries } from '../forward-configuration.js';

/** The largest weight of each row of a tile: the one whose key has the largest exact score. */
export interface LargestWeights {
  /** [128]: its key, counted from the problem's first; −1 for a row that sees none. */
  readonly keys: Int32Array;
  /** [128]: its exact score. */
  readonly scores: Float64Array;
  readonly begin: () => void;
  /** Takes the exact scores [rows × columns] of the block whose first key is `firstKey`. */
  readonly step: (scores: Float64Array, firstKey: number, rows: number, columns: number) => void;
}

/** Keeps track of the largest weights; among equal scores the first that is met. */
export function createLargestWeights(): LargestWeights {
  const keys = new Int32Array(tileQueries);
  const scores = new Float64Array(tileQueries);
  return {
    keys,
    scores,
    begin: () => {
      keys.fill(-1);
      scores.fill(-Infinity);
    },
    step: (block, firstKey, rows, columns) => {
      for (let row = 0, i = 0; row < rows; row++)
        for (let j = 0; j < columns; j++, i++)
          if (block[i] > scores[row]) {
            scores[row] = block[i];
            keys[row] = firstKey + j;
          }
    },
  };
}
