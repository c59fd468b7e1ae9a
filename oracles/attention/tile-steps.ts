import type { KeyRange } from '../../src/problem/index.js';
import { tileRows, type Operand } from './operand.js';
import type { ScoreConstants } from './score-constants.js';
import { loadTransposedTile, type TileEngine } from './tile-engine.js';

/** Raw scores of 64 queries (loaded in the engine) against the tile of keys at `firstKey`. */
export function scoreTile(
  engine: TileEngine,
  keys: Operand,
  firstKey: number,
  constants: ScoreConstants,
) {
  const { kernels, queries, keysTransposed, scores } = engine;
  loadTransposedTile(keysTransposed.view, keys.values, firstKey, keys.dim);
  kernels.product(
    queries.address,
    keysTransposed.address,
    scores.address,
    tileRows,
    keys.dim,
    tileRows,
  );
  if (constants.softcapped)
    kernels.capScores(scores.address, tileRows * tileRows, constants.capFactorHigh);
}

/** Clips each row's range of keys to the tile at `firstKey`; returns whether any row sees it. */
export function clipRanges(
  engine: TileEngine,
  ranges: readonly KeyRange[],
  firstKey: number,
): boolean {
  const { low, high } = engine;
  let seen = false;
  for (let i = 0; i < tileRows; i++) {
    const range = ranges[i] ?? { begin: 0, end: 0 };
    low.view[i] = Math.max(range.begin - firstKey, 0);
    high.view[i] = Math.min(range.end - firstKey, tileRows);
    if (low.view[i] < high.view[i]) seen = true;
  }
  return seen;
}

/** Turns the scores of a tile into weights, in place. */
export function weightTile(engine: TileEngine, constants: ScoreConstants): void {
  const { kernels, scores, low, high, reference, factor, extent, maximum, tileTotal } = engine;
  kernels.weights(
    scores.address,
    tileRows,
    tileRows,
    constants.factorHigh,
    constants.factorLow,
    low.address,
    high.address,
    reference.address,
    factor.address,
    extent.address,
    maximum.address,
    tileTotal.address,
  );
}

/** First and last key tile that any of the rows sees, as [first, end) in keys. */
export function tileSpan(ranges: readonly KeyRange[]): KeyRange {
  let begin = Infinity;
  let end = 0;
  for (const range of ranges) {
    if (range.begin >= range.end) continue;
    begin = Math.min(begin, range.begin);
    end = Math.max(end, range.end);
  }
  return { begin: begin === Infinity ? 0 : Math.floor(begin / tileRows) * tileRows, end };
}
