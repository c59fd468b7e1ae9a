import { spanOfRows } from '../../src/problem/index.js';
import { tileRows } from '../attention/operand.js';
import type { Rules } from '../attention/rules.js';
import { addKeys, addQueries, blockErrors } from './add-tiles.js';
import type { GradientEngine } from './gradient-engine.js';
import type { RowStatistics } from './row-statistics.js';
import type { TileTargets } from './sums.js';
import { loadBlock, weighTile, type GradientBlock } from './weigh-tile.js';

/** Whether the gradients of a tile's keys are wanted. */
function isWanted(
  { dq, keys, placeOf, visit }: TileTargets,
  firstKey: number,
  count: number,
): boolean {
  if (dq !== null || visit !== null) return true;
  if (keys === null) return false;
  for (let key = firstKey; key < Math.min(count, firstKey + tileRows); key++)
    if (placeOf(key) >= 0) return true;
  return false;
}

/**
 * The second pass over the keys: P, dS and dT of the rows that `statistics` calls usable, tile by tile, added to what
 * is wanted. Other rows of the block add nothing.
 */
export function addGradients(
  engine: GradientEngine,
  block: GradientBlock,
  rules: Rules,
  statistics: RowStatistics,
  targets: TileTargets,
): void {
  const { tile, kernels } = engine;
  const { isUsable } = statistics;
  const usable = {
    ...block,
    ranges: block.ranges.map((ranges, i) => (isUsable[i] === 1 ? ranges : [])),
  };
  const errors = blockErrors(block, statistics, rules);
  loadBlock(engine, block);
  engine.total.view.set(statistics.total);
  engine.mean.view.set(statistics.mean);
  engine.meanSize.view.set(statistics.meanSize);
  const count = tileRows * tileRows;
  const addendError = new Float64Array(tileRows);
  const span = spanOfRows(usable.ranges);
  const first = Math.floor(span.begin / tileRows) * tileRows;
  for (let firstKey = first; firstKey < span.end; firstKey += tileRows) {
    if (!isWanted(targets, firstKey, block.operands.keys.rows)) continue;
    tile.reference.view.set(statistics.reference);
    const view = weighTile(engine, usable, rules, firstKey, addendError);
    if (view === null) continue;
    const square = [engine.products, engine.slopes];
    // A row that overflows would make NaN of its zeros.
    for (let i = 0; i < tileRows; i++)
      if (isUsable[i] === 0)
        for (const { view } of square) view.fill(0, i * tileRows, (i + 1) * tileRows);
    kernels.differentiate(
      tile.scores.address,
      engine.products.address,
      engine.scales.address,
      tileRows,
      engine.total.address,
      engine.mean.address,
      engine.meanSize.address,
    );
    targets.visit?.({
      firstKey,
      derivatives: engine.products.view,
      scales: engine.scales.view,
      weights: tile.scores.view,
    });
    if (rules.constants.softcapped)
      for (const { address } of [engine.products, engine.scales])
        kernels.multiplyBy(address, engine.slopes.address, count);
    let weights = tile.scores;
    if (rules.kept !== null) {
      engine.applied.view.set(tile.scores.view);
      kernels.multiplyBy(engine.applied.address, engine.factors.address, count);
      weights = engine.applied;
    }
    if (targets.dq !== null)
      addQueries(engine, usable, statistics, targets.dq, { firstKey, errors });
    addKeys(engine, usable, statistics, targets, { firstKey, view, errors, weights });
  }
}
