import { forEachWeightTile, type WeightTile } from '../../../oracles/index.js';
import { decodeTensor } from '../../formats/index.js';
import {
  clipRanges,
  problemMask,
  rowPlaces,
  type Problem,
  type ProblemShape,
} from '../../problem/index.js';
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

/**
 * Key tiles of a head at the most; where a head has few blocks of queries so many for each. Beyond that neighbouring tiles are
 * taken together, so that the test costs no more walks over long keys.
 */
const mostTiles = 32;
const tilesPerBlock = 8;

/** Keys of a tile, of a head whose longest sequence has so many keys, and which has so many blocks of queries. */
function tileKeysOf(keys: number, blocks: number): number {
  const tiles = Math.ceil(keys / keyTileKeys);
  if (tiles <= mostTiles) return keyTileKeys;
  return keyTileKeys * Math.ceil(tiles / Math.min(mostTiles, tilesPerBlock * blocks));
}

/** Queries of one sequence, and the keys of that. */
interface TestedRows {
  readonly firstRow: number;
  readonly rows: number;
  readonly firstKey: number;
  readonly keys: number;
}

/** The rows of a head, sequence by sequence. */
function rowsBySequence(problem: Problem, shape: ProblemShape, head: number): TestedRows[] {
  const placeOf = rowPlaces(problem, shape);
  const all: TestedRows[] = [];
  let last = -1;
  for (let row = 0; row < shape.queries; row++) {
    const { sequence, firstKey, keys } = placeOf(head, row);
    const known = sequence === last ? all.pop() : undefined;
    const firstRow = known?.firstRow ?? row;
    all.push({ firstRow, rows: row + 1 - firstRow, firstKey, keys });
    last = sequence;
  }
  return all;
}

/** The tested blocks of a sequence's rows: all of them, or some evenly spread up to the last. */
function testedBlocks(all: TestedRows, tileKeys: number): TestedRows[] {
  const blocks = Math.ceil(all.rows / structureTileRows);
  const tiles = Math.ceil(all.keys / tileKeys);
  if (tiles === 0) return [];
  const count = Math.min(blocks, Math.max(1, Math.ceil((blocks * fullyTestedTiles) / tiles)));
  return Array.from({ length: count }, (_, i) => {
    const offset = structureTileRows * (Math.ceil(((i + 1) * blocks) / count) - 1);
    const rows = Math.min(structureTileRows, all.rows - offset);
    return { ...all, firstRow: all.firstRow + offset, rows };
  });
}

/** Values from a key on, [keys × vDim]. */
interface DecodedValues {
  readonly firstKey: number;
  readonly values: Float64Array;
}

/** Adds Σ_j (w_j O − w_j D_j v_j) over the keys of a tile of weights to the rows of their key tiles' directions. */
function addTile(
  directionOf: (key: number) => Float64Array,
  { weights, applied, rows, firstRow, firstKey, keys, stride }: WeightTile,
  out: Float64Array,
  { values, firstKey: origin }: DecodedValues,
  vDim: number,
): void {
  for (let i = 0; i < rows; i++) {
    const to = (firstRow + i) * vDim;
    for (let j = 0; j < keys; j++) {
      const w = weights[i * stride + j];
      // Rows without weights may hold infinities and NaNs.
      if (w === 0) continue;
      const p = applied[i * stride + j];
      const direction = directionOf(firstKey + j);
      let from = (firstKey + j - origin) * vDim;
      for (let at = to; at < to + vDim; at++) direction[at] += w * out[at] - p * values[from++];
    }
  }
}

/** D of the tiles of a group: Σ_{j in t} (w_j O − w_j D_j v_j), [rows × vDim] each. */
function tileDirections(
  { problem, errors: { reference } }: KeyTileBlock,
  { firstTile, tiles, tileKeys }: KeyTileGroup,
  { firstKey: origin, keys }: TestedRows,
): Float64Array[] {
  const { vDim, queries: rows } = reference.shape;
  const directions = Array.from({ length: tiles }, () => new Float64Array(rows * vDim));
  const mask = problemMask(problem, reference.shape);
  const firstKey = origin + firstTile * tileKeys;
  const end = Math.min(origin + keys, firstKey + tiles * tileKeys);
  const values = decodeTensor(problem.v, firstKey * vDim, end * vDim);
  const directionOf = (key: number) => directions[Math.floor((key - firstKey) / tileKeys)];
  const visitor = {
    begin: () => undefined,
    visit: (tile: WeightTile) =>
      addTile(directionOf, tile, reference.quantities.out.values, { firstKey, values }, vDim),
    end: () => undefined,
  };
  forEachWeightTile(problem, reference, [], visitor, {
    ranges: (head, query) => clipRanges(mask.ranges(head, query), firstKey, end),
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
  /** Tiles are counted within each sequence. */
  readonly firstTile: number;
  readonly tiles: number;
  readonly tileKeys: number;
  /** The tested blocks of the head whose sequences have these tiles. */
  readonly blocks: readonly TestedRows[];
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
 * blocks are left out in proportion, never all of a head, and beyond 4096 keys neighbouring tiles are taken together. Problems
 * of a single key tile have none to miss. Tiles of packed sequences are counted within each, and those of one number
 * are pooled over all sequences.
 * @param share the probability of a false alarm, per scope
 */
export function planKeyTiles(problem: Problem, shape: ProblemShape, share: number): KeyTilePlan {
  const { batch, heads, queries, vDim } = shape;
  const rowsOf = Array.from({ length: batch * heads }, (_, head) =>
    rowsBySequence(problem, shape, head),
  );
  const longest = rowsOf.flat().reduce((most, { keys }) => Math.max(most, keys), 0);
  const blockCounts = rowsOf.map((all) =>
    all.reduce((count, { rows }) => count + Math.ceil(rows / structureTileRows), 0),
  );
  const fewest = blockCounts.reduce((least, count) => Math.min(least, count), Infinity);
  const tileKeys = tileKeysOf(longest, fewest);
  const tiles = Math.ceil(longest / tileKeys);
  const blocksOf = rowsOf.map((all) => all.flatMap((one) => testedBlocks(one, tileKeys)));
  const mostBlocks = blocksOf.reduce((most, blocks) => Math.max(most, blocks.length), 0);
  const tests = batch * heads * tiles;
  const limits = {
    ofBlock: alarmDeviations(tests * mostBlocks, share),
    ofHead: alarmDeviations(tests, share),
    queries,
  };
  const isNone = tiles < 2 || queries === 0 || vDim === 0 || isKeyTileTestLeftOut(problem, shape);
  if (isNone) return { groups: [], limits };
  const groups = blocksOf.flatMap((all, head) =>
    Array.from({ length: Math.ceil(tiles / directionsAtOnce) }, (_, i) => {
      const firstTile = i * directionsAtOnce;
      const count = Math.min(directionsAtOnce, tiles - firstTile);
      const blocks = all.filter(({ keys }) => keys > firstTile * tileKeys);
      return { head, firstTile, tiles: count, tileKeys, blocks };
    }),
  );
  return { groups: groups.filter(({ blocks }) => blocks.length > 0), limits };
}

/** One block of a group: a problem of its own, with its errors. */
export interface KeyTileBlock {
  readonly problem: Problem;
  readonly errors: RowErrors;
}

/** Collects a block's errors, projected on what leaving each tile of a group out would do. */
function collectBlock(
  statistics: readonly Statistic[],
  block: KeyTileBlock,
  group: KeyTileGroup,
  place: TestedRows,
): void {
  const { problem, errors } = block;
  const { reference, bound } = errors;
  const { vDim } = reference.shape;
  const directions = tileDirections(block, group, place);
  const toLargest = new Float64Array(walkRows);
  const amplitude = new Float64Array(walkRows);
  const rowStatistic = new Statistic();
  forEachWeightTile(problem, reference, directions, {
    begin: (_, firstRow, rows) => {
      for (let i = 0; i < rows; i++) {
        const row = firstRow + i;
        toLargest[i] = Math.exp(reference.denominator[row] - reference.maximum[row]);
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
 * would do to O, D = Σ_{j in tile} (w_j O − w_j D_j v_j), pooled over tiles of 128 queries and over heads. A
 * tile that is skipped shows as about 1, one that is counted twice as about −1, whatever the weight
 * it carries; rounding leaves the statistic within its threshold, under the premises of
 * `StructureJudge` and with probability of a false alarm at most that of the plan per scope. Where a tile
 * carries so little weight that rounding hides it, the threshold exceeds 1.
 *
 * @param blocks those of the group, in its order
 * @returns the result that is largest relative to its threshold, per scope; places are those of the group, and the
 * first key of a result about a head with packed sequences is counted within each of them
 */
export function testKeyTiles(
  group: KeyTileGroup,
  blocks: readonly KeyTileBlock[],
  { ofBlock, ofHead, queries }: KeyTileLimits,
): StructureResult[] {
  const { head, firstTile, tiles, tileKeys, blocks: places } = group;
  const statistics = () => Array.from({ length: tiles }, () => new Statistic());
  const [blockStatistics, headStatistics] = [statistics(), statistics()];
  const worst = new WorstResults();
  const keysOf = (t: number, keys: number) => {
    const firstKey = (firstTile + t) * tileKeys;
    return { firstKey, keys: Math.min(tileKeys, keys - firstKey) };
  };
  blocks.forEach((block, index) => {
    const place = places[index];
    collectBlock(blockStatistics, block, group, place);
    blockStatistics.forEach((statistic, t) => {
      const { firstKey, keys } = keysOf(t, place.keys);
      const { firstRow, rows } = place;
      const where = { firstRow, rows, firstKey: place.firstKey + firstKey, keys };
      if (keys > 0)
        addResult(worst, statistic, statistic.tolerance(ofBlock), {
          scope: 'tile',
          head,
          ...where,
        });
      headStatistics[t].merge(statistic);
      statistic.clear();
    });
  });
  const longest = places.reduce((most, { keys }) => Math.max(most, keys), 0);
  headStatistics.forEach((statistic, t) => {
    const ofKeys = keysOf(t, longest);
    const where = { scope: 'head', head, firstRow: 0, rows: queries, ...ofKeys } as const;
    if (ofKeys.keys > 0) addResult(worst, statistic, statistic.tolerance(ofHead), where);
  });
  return worst.list();
}
