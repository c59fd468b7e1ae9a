import { maskTile, type TileView } from '../../src/problem/index.js';
import type { QueryBlock } from '../attention/head-operands.js';
import { tileRows } from '../attention/operand.js';
import type { Rules } from '../attention/rules.js';
import { loadTile, scoreTile, weightTile } from '../attention/tile-engine.js';
import { loadAddends } from '../attention/tile-features.js';
import type { GradientEngine } from './gradient-engine.js';
import type { GradientOperands } from './operands.js';

/** Up to 64 query rows of one head, and the keys that count for each of them. */
export interface GradientBlock extends QueryBlock {
  readonly operands: GradientOperands;
}

/** Puts the rows of a block into the engine. */
export function loadBlock(engine: GradientEngine, block: GradientBlock): void {
  const { query, dout } = block.operands;
  const index = block.firstRow / tileRows;
  loadTile(engine.tile.queries.view, query.tile(index), query.dim, query.dim);
  loadTile(engine.queryRows.view, query.tile(index), query.dim, engine.qkStride);
  loadTile(engine.dout.view, dout.tile(index), dout.dim, engine.tile.vStride);
}

/** Writes dropout's factors of the weights of a tile: 1 / (1 − probability) or 0. */
function loadFactors(
  { factors }: GradientEngine,
  { kept }: Rules,
  { operands: { head }, firstRow, ranges }: GradientBlock,
  firstKey: number,
): void {
  const isKept = new Uint8Array(tileRows);
  const factor = 1 / (kept?.share ?? 1);
  factors.view.fill(0);
  for (let i = 0; i < ranges.length; i++) {
    if (ranges[i].length === 0) continue;
    kept?.fill(head, firstRow + i, firstKey, isKept);
    for (let j = 0; j < tileRows; j++) factors.view[i * tileRows + j] = isKept[j] * factor;
  }
}

/**
 * Computes the weights of a block (loaded in the engine) against the tile of keys at `firstKey`, its slopes where there
 * is a softcap, and the products dP = dO·v with what dropout does to them.
 * @param addendError per row: raised to the largest rounding error of addends
 * @returns the visibility of the tile; null, without computing anything, if no row sees a key
 */
export function weighTile(
  engine: GradientEngine,
  block: GradientBlock,
  rules: Rules,
  firstKey: number,
  addendError: Float64Array,
): TileView | null {
  const { tile, kernels } = engine;
  const { keys, values } = block.operands;
  const { constants, law } = rules;
  const places = { begin: firstKey, end: firstKey + tileRows };
  const view = maskTile(block.ranges, places, tile.low.view, tile.high.view);
  if (!view.isSeen) return null;
  const count = tileRows * tileRows;
  const all = { first: 0, count: tileRows, few: null };
  scoreTile(tile, keys, firstKey, { ...constants, softcapped: false }, all);
  if (constants.softcapped)
    kernels.capSlopes(tile.scores.address, engine.slopes.address, count, constants.capFactorHigh);
  loadAddends(tile, law, block, firstKey, addendError);
  weightTile(tile, { constants, isAdded: law.addend !== null }, view.interrupted);
  tile.valuesTransposed.view.set(values.columns(firstKey / tileRows));
  kernels.product(
    engine.dout.address,
    tile.valuesTransposed.address,
    engine.products.address,
    tileRows,
    tile.vStride,
    tileRows,
  );
  if (rules.kept !== null) {
    loadFactors(engine, rules, block, firstKey);
    kernels.multiplyBy(engine.products.address, engine.factors.address, count);
  }
  return view;
}
