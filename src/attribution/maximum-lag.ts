/** How far the maxima in use lag behind the rows' largest scores when the last block is done. */
export interface MaximumLag {
  readonly rows: number;
  /** Rows whose maximum lags. */
  readonly lagging: number;
  /** Over the lagging rows, in log2: their largest weight is 2^lag instead of 1. */
  readonly mean: number;
  readonly max: number;
}

/** Summarises the lags of rows, 0 for a row that does not lag. */
export function summariseLags(lags: readonly Float64Array[]): MaximumLag {
  let [rows, lagging, sum, max] = [0, 0, 0, 0];
  for (const tile of lags)
    for (const lag of tile) {
      rows++;
      if (!(lag > 0)) continue;
      lagging++;
      sum += lag;
      max = Math.max(max, lag);
    }
  return { rows, lagging, mean: sum / Math.max(lagging, 1), max };
}
