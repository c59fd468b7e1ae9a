import { forEachWeightTile, type WeightTile } from '../../../oracles/index.js';
import { decodeTensor } from '../../formats/index.js';
import type { Problem, ProblemShape } from '../../problem/index.js';
import { cutBlock, type QueryBlock } from './query-block.js';
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
  { problem, reference, rows }: QueryBlock,
  values: DecodedValues,
  firstTile: number,
  count: number,
): Float64Array[] {
  const { vDim } = reference.shape;
  const directions = Array.from({ length: count }, () => new Float64Array(rows * vDim));
  forEachWeightTile(problem, reference, [], {
    begin: () => undefined,
    visit: (tile) => {
      // Tiles of weights begin at multiples of their size, which divides that of key tiles.
      const direction = directions[Math.floor(tile.firstKey / keyTileKeys) - firstTile];
      if (direction !== undefined)
        addTile(direction, tile, reference.quantities.out.values, values, vDim);
    },
    end: () => undefined,
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

/**
 * Whether each tile of 128 keys is there: the kernel's error projected on what leaving the tile out
 * would do to O, D = Σ_{j in tile} w_j (O − v_j), pooled over tiles of 128 queries and over heads. A
 * tile that is skipped shows as about 1, one that is counted twice as about −1, whatever the weight
 * it carries; rounding leaves the statistic within its threshold, under the premises of
 * `structureResults` and with probability of a false alarm at most `share` per scope. Where a tile
 * carries so little weight that rounding hides it, the threshold exceeds 1.
 *
 * All blocks of queries are tested against up to two key tiles; with more key tiles, blocks are
 * left out in proportion, never all of a head. Problems of a single key tile have none to miss.
 * Returns the result that is largest relative to its threshold, per scope.
 */
export function testKeyTiles(
  problem: Problem,
  errors: RowErrors,
  share: number,
): StructureResult[] {
  const { reference } = errors;
  const { shape } = reference;
  const { batch, heads, queries, keys, vDim } = shape;
  const tiles = Math.ceil(keys / keyTileKeys);
  if (tiles < 2 || queries === 0 || vDim === 0) return [];
  const blocks = testedBlocks(shape);
  const tests = batch * heads * tiles;
  const ofBlock = alarmDeviations(tests * blocks.length, share);
  const ofHead = alarmDeviations(tests, share);
  const atOnce = Math.min(tiles, directionsAtOnce);
  const statistics = () => Array.from({ length: atOnce }, () => new Statistic());
  const [blockStatistics, headStatistics] = [statistics(), statistics()];
  const rowStatistic = new Statistic();
  const worst = new WorstResults();
  const toLargest = new Float64Array(walkRows);
  const amplitude = new Float64Array(walkRows);

  const collectBlock = (block: QueryBlock, firstTile: number, count: number) => {
    const { problem: cut, reference: part } = block;
    const firstKey = firstTile * keyTileKeys;
    const end = Math.min(keys, firstKey + count * keyTileKeys);
    const values = { firstKey, values: decodeTensor(cut.v, firstKey * vDim, end * vDim) };
    const directions = tileDirections(block, values, firstTile, count);
    forEachWeightTile(cut, part, directions, {
      begin: (_, firstRow, rows) => {
        for (let i = 0; i < rows; i++) {
          toLargest[i] = Math.exp(
            part.quantities.lse.values[firstRow + i] - part.maximum[firstRow + i],
          );
          const row = block.head * queries + block.firstRow + firstRow + i;
          const { weightRounding, typicalWeight, isCoarse } = errors.bound.row(row);
          amplitude[i] = isCoarse ? 0 : weightRounding + typicalWeight;
        }
      },
      visit: (tile) =>
        collectWeights(blockStatistics, errors.weightGroups, tile, toLargest, amplitude),
      end: (_, firstRow, rows) => {
        for (let i = 0; i < rows; i++) {
          const local = firstRow + i;
          const row = block.head * queries + block.firstRow + local;
          directions.forEach((direction, t) => {
            const ofRow = direction.subarray(local * vDim, (local + 1) * vDim);
            if (collectRow(rowStatistic, errors, row, ofRow))
              blockStatistics[t].merge(rowStatistic);
          });
        }
      },
    });
  };

  for (let head = 0; head < batch * heads; head++)
    for (let firstTile = 0; firstTile < tiles; firstTile += atOnce) {
      const count = Math.min(atOnce, tiles - firstTile);
      const keysOf = (t: number) => {
        const firstKey = (firstTile + t) * keyTileKeys;
        return { firstKey, keys: Math.min(keyTileKeys, keys - firstKey) };
      };
      for (const firstRow of blocks) {
        const rows = Math.min(structureTileRows, queries - firstRow);
        const block = cutBlock(problem, reference, head, firstRow, rows);
        collectBlock(block, firstTile, count);
        for (let t = 0; t < count; t++) {
          const statistic = blockStatistics[t];
          const where = { head, firstRow, rows, ...keysOf(t) };
          addResult(worst, statistic, statistic.tolerance(ofBlock), { scope: 'tile', ...where });
          headStatistics[t].merge(statistic);
          statistic.clear();
        }
      }
      for (let t = 0; t < count; t++) {
        const where = { head, firstRow: 0, rows: queries, ...keysOf(t) };
        addResult(worst, headStatistics[t], headStatistics[t].tolerance(ofHead), {
          scope: 'head',
          ...where,
        });
        headStatistics[t].clear();
      }
    }
  return worst.list();
}
