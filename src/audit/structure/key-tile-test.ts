import {
  forEachWeightTile,
  type ProjectionFormat,
  type WeightVisitor,
  wholeMatrices,
  WorkingMemories,
} from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { tileDirections } from './key-tile-directions.js';
import type { KeyTileGroup, KeyTileLimits, TestedRows } from './key-tile-plan.js';
import { KeyTileStatistics, type RowErrors } from './key-tile-statistics.js';
import { WorstResults, type StructureResult } from './structure-result.js';
import { WeightErrors } from './weight-errors.js';

/** Adds the result of some rows and a tile of keys, unless nothing is known of it. */
function addResult(
  worst: WorstResults,
  statistics: KeyTileStatistics,
  tile: number,
  deviations: number,
  where: Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows' | 'firstKey' | 'keys'>,
): void {
  const norm = statistics.norm[tile];
  if (norm === 0) return;
  worst.add({
    test: 'key-tile',
    ...where,
    statistic: statistics.signed[tile] / norm,
    threshold: statistics.tolerance(tile, deviations) / norm,
  });
}

/** One block of a group: a problem of its own, with its errors. */
export interface KeyTileBlock {
  readonly problem: Problem;
  readonly errors: RowErrors;
  /** What its values are projected in. */
  readonly format: ProjectionFormat;
}

/** Collects a block's errors, projected on the change of O when each tile of a group is left out. */
function collectBlock(
  statistics: KeyTileStatistics,
  { problem, errors, format }: KeyTileBlock,
  group: KeyTileGroup,
  place: TestedRows,
  memories: WorkingMemories,
): void {
  const { reference, bound } = errors;
  const directions = tileDirections(problem, reference, group, place, memories);
  WeightErrors.with(memories, errors.weightGroups, directions.length, (ofWeights) => {
    const visitor: WeightVisitor = {
      begin: (_, firstRow, rows) => {
        for (let i = 0; i < rows; i++) {
          const row = firstRow + i;
          ofWeights.toLargest[i] = Math.exp(reference.denominator[row] - reference.maximum[row]);
          const { weightRounding, typicalWeight, isCoarse } = bound.row(row);
          ofWeights.amplitude[i] = isCoarse ? 0 : weightRounding + typicalWeight;
        }
      },
      visit: (tile) => ofWeights.add(tile),
      end: (_, firstRow, rows) => {
        for (let row = firstRow; row < firstRow + rows; row++)
          statistics.addRow(errors, row, directions);
      },
    };
    const projected = { ...wholeMatrices(directions, reference.shape), format };
    forEachWeightTile(problem, reference, visitor, { projected, memories });
    statistics.addWeights(ofWeights.state());
  });
}

/**
 * Whether each tile of 128 keys is there: the kernel's error projected on the change of O when the tile is left
 * out, D = Σ_{j in tile} (w_j O − w_j D_j v_j), pooled over tiles of 128 queries and over heads. A tile that is
 * skipped shows as about 1, one that is counted twice as about −1, whatever the weight it carries; rounding leaves
 * the statistic within its threshold, under the premises of `StructureJudge` and with a probability of a false
 * alarm of at most that of the plan, per scope. Where a tile carries so little weight that rounding hides it, the
 * threshold exceeds 1.
 *
 * @param blocks those of the group, in its order
 * @returns the result that is largest relative to its threshold, per scope; places are those of the group, and the
 * first key of a result about a head with packed sequences is counted within each of them
 */
export function testKeyTiles(
  group: KeyTileGroup,
  blocks: readonly KeyTileBlock[],
  { ofBlock, ofHead, queries }: KeyTileLimits,
  memories: WorkingMemories = new WorkingMemories(),
): StructureResult[] {
  const { head, firstTile, tiles, tileKeys, blocks: places } = group;
  const worst = new WorstResults();
  const keysOf = (t: number, keys: number) => {
    const firstKey = (firstTile + t) * tileKeys;
    return { firstKey, keys: Math.min(tileKeys, keys - firstKey) };
  };
  const longest = places.reduce((most, { keys }) => Math.max(most, keys), 0);
  const statistics = () => new KeyTileStatistics(tiles, blocks[0].errors.weightGroups);
  const [ofRows, ofAll] = [statistics(), statistics()];
  blocks.forEach((block, index) => {
    const place = places[index];
    collectBlock(ofRows, block, group, place, memories);
    for (let t = 0; t < tiles; t++) {
      const { firstKey, keys } = keysOf(t, place.keys);
      const { firstRow, rows } = place;
      const where = { firstRow, rows, firstKey: place.firstKey + firstKey, keys };
      if (keys > 0) addResult(worst, ofRows, t, ofBlock, { scope: 'tile', head, ...where });
    }
    ofAll.merge(ofRows);
    ofRows.clear();
  });
  for (let t = 0; t < tiles; t++) {
    const ofKeys = keysOf(t, longest);
    const where = { scope: 'head', head, firstRow: 0, rows: queries, ...ofKeys } as const;
    if (ofKeys.keys > 0) addResult(worst, ofAll, t, ofHead, where);
  }
  return worst.list();
}
