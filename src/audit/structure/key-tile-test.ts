import {
  forEachWeightTile,
  type ProjectionFormat,
  type WeightVisitor,
  wholeMatrices,
  WorkingMemories,
} from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import { tileDirections } from './key-tile-directions.js';
import { emptyShares, type KeyTileShares } from './key-tile-maps.js';
import type { KeyTileGroup, KeyTileLimits, TestedRows } from './key-tile-plan.js';
import { KeyTileStatistics, type RowErrors } from './key-tile-statistics.js';
import { WorstResults, type StructureResult } from './structure-result.js';
import { WeightErrors } from './weight-errors.js';

/** The tests of the tiles of a group: data that a thread may send. */
export interface KeyTilesMeasured {
  /** The result that is largest relative to its threshold, per scope. */
  readonly worst: readonly StructureResult[];
  /** All results. */
  readonly shares: KeyTileShares;
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
 * @returns places are those of the group; the first key of a result about a head with packed sequences is counted within each
 * of them
 */
export function testKeyTiles(
  group: KeyTileGroup,
  blocks: readonly KeyTileBlock[],
  { ofBlock, ofHead, queries }: KeyTileLimits,
  memories: WorkingMemories = new WorkingMemories(),
): KeyTilesMeasured {
  const { head, firstTile, tiles, tileKeys, blocks: places } = group;
  const worst = new WorstResults();
  const shares = emptyShares(group);
  const keysOf = (t: number, keys: number) => {
    const firstKey = (firstTile + t) * tileKeys;
    return { firstKey, keys: Math.min(tileKeys, keys - firstKey) };
  };
  const longest = places.reduce((most, { keys }) => Math.max(most, keys), 0);
  const makeStatistics = () => new KeyTileStatistics(tiles, blocks[0].errors.weightGroups);
  const [ofRows, ofAll] = [makeStatistics(), makeStatistics()];
  /** Adds the results of some rows, unless nothing is known of them. */
  const addResults = (
    at: number,
    statistics: KeyTileStatistics,
    deviations: number,
    { firstKey: origin, keys: all, ...where }: TestedRows & Pick<StructureResult, 'scope'>,
  ) => {
    for (let t = 0; t < tiles; t++) {
      const norm = statistics.norm[t];
      const { firstKey, keys } = keysOf(t, all);
      if (norm === 0 || keys <= 0) continue;
      const statistic = statistics.signed[t] / norm;
      const threshold = statistics.tolerance(t, deviations) / norm;
      const place = { head, ...where, firstKey: origin + firstKey, keys };
      worst.add({ test: 'key-tile', ...place, statistic, threshold });
      shares.missing[at * tiles + t] = statistic;
      shares.explained[at * tiles + t] = threshold;
      // By Cauchy and Schwarz at most 1.
      const squares = statistics.squares[t];
      shares.ofError[at * tiles + t] =
        squares === 0 ? 0 : (statistic * statistics.signed[t]) / squares;
    }
  };
  blocks.forEach((block, index) => {
    collectBlock(ofRows, block, group, places[index], memories);
    addResults(index, ofRows, ofBlock, { scope: 'tile', ...places[index] });
    ofAll.merge(ofRows);
    ofRows.clear();
  });
  const all = { firstRow: 0, rows: queries, firstKey: 0, keys: longest };
  addResults(blocks.length, ofAll, ofHead, { scope: 'head', ...all });
  return { worst: worst.list(), shares };
}
