import { forEachWeightTile, type WeightTile } from '../../../oracles/index.js';
import { decodeTensor } from '../../formats/index.js';
import { clipRanges, problemMask, type Problem, type ProblemShape } from '../../problem/index.js';
import {
  alarmDeviations,
  collectRow,
  collectWeights,
  Statistic,
  structureTileRows,
  walkRows,
  type RowErrors,
} from './structure-statistic.js';
import { keyTileKeys, WorstResults, type StructureResult } from './structure-result.js';

/**
 * Directions that are projected at once: each holds 128 × vDim numbers, and each walk over a block's
 * weights serves so many key tiles.
 */
const directionsAtOnce = 4;

/**
 * Key tiles per head that all blocks of queries are tested against. With more of them the blocks are
 * thinned out in proportion, so that the test costs about as much as the scale and bias tests do: a tile that a
 * kernel skips is skipped for (nearly) all queries of a head.
 */
const fullyTestedTiles = 2;

/** Effects below this part of Σ w|v| are the walk's own roundings (2^-44). */
const negligible = 2 ** -36;

/** First rows of the tested blocks of one head: all of them, or some evenly spread up to the last. */
function testedBlocks({ queries, keys }: ProblemShape): number[] {
  const blocks = Math.ceil(queries / structureTileRows);
  const tiles = Math.ceil(keys / keyTileKeys);
  const count = Math.min(blocks, Math.max(1, Math.ceil((blocks * fullyTestedTiles) / tiles)));
  return Array.from(
    { length: count },
    (_, i) => structureTileRows * (Math.ceil(((i + 1) * blocks) / count) - 1),
  );
}

/** Values from a key on, [keys × vDim]. */
interface DecodedValues {
  readonly firstKey: number;
  readonly values: Float64Array;
}

/** Adds Σ_j w_j (O − v_j) over the keys of a tile of weights to the rows of `direction`. */
function addTile(
  direction: Float64Array,
  { weights, rows, firstRow, firstKey, keys, stride }: WeightTile,
  out: Float64Array,
  { values, firstKey: origin }: DecodedValues,
  vDim: number,
): void {
  for (let i = 0; i < rows; i++) {
    const to = (firstRow + i) * vDim;
    let share = 0;
    for (let j = 0; j < keys; j++) {
      const w = weights[i * stride + j];
      if (w === 0) continue;
      share += w;
      let from = (firstKey + j - origin) * vDim;
      for (let at = to; at < to + vDim; at++) direction[at] -= w * values[from++];
    }
    // Rows without weights may hold infinities and NaNs.
    if (share === 0) continue;
    for (let at = to; at < to + vDim; at++) direction[at] += share * out[at];
  }
}

/** D of key tiles [firstTile, firstTile + count): Σ_{j in t} w_j (O − v_j), [rows × vDim] each. */
function tileDirections(
  { problem, errors: { reference } }: KeyTileBlock,
  values: DecodedValues,
  firstTile: number,
  count: number,
): Float64Array[] {
  const { vDim, queries: rows } = reference.shape;
  const directions = Array.from({ length: count }, () => new Float64Array(rows * vDim));
  const mask = problemMask(problem, reference.shape);
  const end = (firstTile + count) * keyTileKeys;
  const visitor = {
    begin: () => undefined,
    visit: (tile: WeightTile) => {
      // Tiles of weights begin at multiples of their size, which divides that of key tiles.
      const direction = directions[Math.floor(tile.firstKey / keyTileKeys) - firstTile];
      addTile(direction, tile, reference.quantities.out.values, values, vDim);
    },
    end: () => undefined,
  };
  forEachWeightTile(problem, reference, [], visitor, {
    ranges: (head, query) => clipRanges(mask.ranges(head, query), values.firstKey, end),
  });
  for (const direction of directions)
    for (let i = 0; i < rows; i++)
      clearRoundings(direction, reference.quantities.out.magnitude, i * vDim, vDim);
  return directions;
}

/** Sets a row of D to zero where it is no more than roundings: all that the row sees is in the tile. */
function clearRoundings(
  direction: Float64Array,
  magnitude: Float64Array,
  from: number,
  vDim: number,
): void {
  let squares = 0;
  let scale = 0;
  for (let i = from; i < from + vDim; i++) {
    squares += direction[i] ** 2;
    scale += magnitude[i] ** 2;
  }
  if (squares < negligible ** 2 * scale) direction.fill(0, from, from + vDim);
}

/** Adds the result of some rows and a tile of keys, unless nothing is known of it. */
function addResult(
  worst: WorstResults,
  { signed, norm }: Statistic,
  tolerance: number,
  where: Pick<StructureResult, 'scope' | 'head' | 'firstRow' | 'rows' | 'firstKey' | 'keys'>,
): void {
  if (norm === 0) return;
  worst.add({
    test: 'key-tile',
    ...where,
    statistic: signed / norm,
    threshold: tolerance / norm,
  });
}

/** Tiles of keys that are tested together, in all tested blocks of a head. */
export interface KeyTileGroup {
  /** Counted over [batch, heads]. */
  readonly head: number;
  readonly firstTile: number;
  readonly tiles: number;
  /** The tested blocks of the head. */
  readonly blocks: readonly { readonly firstRow: number; readonly rows: number }[];
}

/** What the statistics of key tiles are judged by. */
export interface KeyTileLimits {
  readonly ofBlock: number;
  readonly ofHead: number;
  /** Queries of a head. */
  readonly queries: number;
}

/** What there is to test, group by group, and by which limits; nothing where no key tile could be missed. */
export interface KeyTilePlan {
  readonly groups: readonly KeyTileGroup[];
  readonly limits: KeyTileLimits;
}

/**
 * Whether a sample of rows has so few of each head that a test of its key tiles would cost many times what all other
 * tests do.
 */
export function isKeyTileTestLeftOut(
  { rows }: Pick<Problem, 'rows'>,
  shape: ProblemShape,
): boolean {
  const blocks = Math.ceil(shape.queries / structureTileRows);
  const tiles = Math.ceil(shape.keys / keyTileKeys);
  return rows !== undefined && blocks * fullyTestedTiles < tiles;
}

/**
 * Plans the tests of key tiles. All blocks of queries are tested against up to two key tiles; with more key tiles,
 * blocks are left out in proportion, never all of a head. Problems of a single key tile have none to miss.
 * @param share the probability of a false alarm, per scope
 */
export function planKeyTiles(problem: Problem, shape: ProblemShape, share: number): KeyTilePlan {
  const { batch, heads, queries, keys, vDim } = shape;
  const tiles = Math.ceil(keys / keyTileKeys);
  const firstRows = testedBlocks(shape);
  const tests = batch * heads * tiles;
  const limits = {
    ofBlock: alarmDeviations(tests * firstRows.length, share),
    ofHead: alarmDeviations(tests, share),
    queries,
  };
  const isNone = tiles < 2 || queries === 0 || vDim === 0 || isKeyTileTestLeftOut(problem, shape);
  if (isNone) return { groups: [], limits };
  const blocks = firstRows.map((firstRow) => ({
    firstRow,
    rows: Math.min(structureTileRows, queries - firstRow),
  }));
  const groups: KeyTileGroup[] = [];
  for (let head = 0; head < batch * heads; head++)
    for (let firstTile = 0; firstTile < tiles; firstTile += directionsAtOnce) {
      const count = Math.min(directionsAtOnce, tiles - firstTile);
      groups.push({ head, firstTile, tiles: count, blocks });
    }
  return { groups, limits };
}

/** One block of a group: a problem of its own, with its errors. */
export interface KeyTileBlock {
  readonly problem: Problem;
  readonly errors: RowErrors;
}

/** Collects a block's errors, projected on what leaving each tile of a group out would do. */
function collectBlock(
  statistics: readonly Statistic[],
  { problem, errors }: KeyTileBlock,
  firstTile: number,
): void {
  const { reference, bound } = errors;
  const { vDim, keys } = reference.shape;
  const firstKey = firstTile * keyTileKeys;
  const end = Math.min(keys, firstKey + statistics.length * keyTileKeys);
  const values = { firstKey, values: decodeTensor(problem.v, firstKey * vDim, end * vDim) };
  const directions = tileDirections({ problem, errors }, values, firstTile, statistics.length);
  const toLargest = new Float64Array(walkRows);
  const amplitude = new Float64Array(walkRows);
  const rowStatistic = new Statistic();
  forEachWeightTile(problem, reference, directions, {
    begin: (_, firstRow, rows) => {
      for (let i = 0; i < rows; i++) {
        const row = firstRow + i;
        toLargest[i] = Math.exp(reference.quantities.lse.values[row] - reference.maximum[row]);
        const { weightRounding, typicalWeight, isCoarse } = bound.row(row);
        amplitude[i] = isCoarse ? 0 : weightRounding + typicalWeight;
      }
    },
    visit: (tile) => collectWeights(statistics, errors.weightGroups, tile, toLargest, amplitude),
    end: (_, firstRow, rows) => {
      for (let row = firstRow; row < firstRow + rows; row++)
        directions.forEach((direction, t) => {
          const ofRow = direction.subarray(row * vDim, (row + 1) * vDim);
          if (collectRow(rowStatistic, errors, row, ofRow)) statistics[t].merge(rowStatistic);
        });
    },
  });
}

/**
 * Whether each tile of 128 keys is there: the kernel's error projected on what leaving the tile out
 * would do to O, D = Σ_{j in tile} w_j (O − v_j), pooled over tiles of 128 queries and over heads. A
 * tile that is skipped shows as about 1, one that is counted twice as about −1, whatever the weight
 * it carries; rounding leaves the statistic within its threshold, under the premises of
 * `StructureJudge` and with probability of a false alarm at most that of the plan per scope. Where a tile
 * carries so little weight that rounding hides it, the threshold exceeds 1.
 *
 * @param blocks those of the group, in its order
 * @returns the result that is largest relative to its threshold, per scope; places are those of the group
 */
export function testKeyTiles(
  { head, firstTile, tiles, blocks: places }: KeyTileGroup,
  blocks: readonly KeyTileBlock[],
  { ofBlock, ofHead, queries }: KeyTileLimits,
): StructureResult[] {
  const statistics = () => Array.from({ length: tiles }, () => new Statistic());
  const [blockStatistics, headStatistics] = [statistics(), statistics()];
  const worst = new WorstResults();
  const keysOf = (t: number, keys: number) => {
    const firstKey = (firstTile + t) * keyTileKeys;
    return { firstKey, keys: Math.min(keyTileKeys, keys - firstKey) };
  };
  blocks.forEach((block, index) => {
    collectBlock(blockStatistics, block, firstTile);
    const { keys } = block.errors.reference.shape;
    blockStatistics.forEach((statistic, t) => {
      const where = { scope: 'tile', head, ...places[index], ...keysOf(t, keys) } as const;
      addResult(worst, statistic, statistic.tolerance(ofBlock), where);
      headStatistics[t].merge(statistic);
      statistic.clear();
    });
  });
  const keys = blocks[0]?.errors.reference.shape.keys ?? 0;
  headStatistics.forEach((statistic, t) => {
    const where = { scope: 'head', head, firstRow: 0, rows: queries, ...keysOf(t, keys) } as const;
    addResult(worst, statistic, statistic.tolerance(ofHead), where);
  });
  return worst.list();
}
