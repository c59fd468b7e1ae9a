import { rowPlaces, type Problem, type ProblemShape } from '../../problem/index.js';
import { alarmDeviations, structureTileRows } from './structure-statistic.js';
import { keyTileKeys } from './structure-result.js';

/**
 * Number of directions that are projected at once: each holds 128 × vDim numbers, and each walk over a
 * block's weights serves that many key tiles.
 */
export const directionsAtOnce = 4;

/**
 * Number of key tiles per head that all blocks of queries are tested against. With more of them the blocks are
 * thinned out in proportion, so that the test costs about as much as the scale and bias tests: a tile that a
 * kernel skips is skipped for (nearly) all queries of a head.
 */
const fullyTestedTiles = 2;

/**
 * The largest number of key tiles of a head, and, for a head with few blocks of queries, of tiles for each block. Beyond that
 * neighbouring tiles are taken together, so that the test does not need more walks over long keys.
 */
const mostTiles = 32;
const tilesPerBlock = 8;

/** Number of keys of a tile, for a head whose longest sequence has `keys` keys, and which has `blocks` blocks of queries. */
function tileKeysOf(keys: number, blocks: number): number {
  const tiles = Math.ceil(keys / keyTileKeys);
  if (tiles <= mostTiles) return keyTileKeys;
  return keyTileKeys * Math.ceil(tiles / Math.min(mostTiles, tilesPerBlock * blocks));
}

/** Queries of one sequence, and its keys. */
export interface TestedRows {
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

/** Limits that the statistics of key tiles are judged by. */
export interface KeyTileLimits {
  readonly ofBlock: number;
  readonly ofHead: number;
  /** Number of queries of a head. */
  readonly queries: number;
}

/** The tests to make, group by group, and their limits; none where no key tile could be missed. */
export interface KeyTilePlan {
  readonly groups: readonly KeyTileGroup[];
  readonly limits: KeyTileLimits;
}

/**
 * Whether a sample has so few rows of each head that a test of its key tiles would cost many times as much as all
 * other tests, or queries list so few keys that tiles of all keys are no unit of theirs.
 */
export function isKeyTileTestLeftOut(
  { rows, keyLists }: Pick<Problem, 'rows' | 'keyLists'>,
  shape: ProblemShape,
): boolean {
  if (keyLists !== undefined) return true;
  const blocks = Math.ceil(shape.queries / structureTileRows);
  const tiles = Math.ceil(shape.keys / keyTileKeys);
  return rows !== undefined && blocks * fullyTestedTiles < tiles;
}

/**
 * Plans the tests of key tiles. All blocks of queries are tested against up to two key tiles; with more key tiles, blocks are
 * left out in proportion, never all of a head, and beyond 4096 keys neighbouring tiles are taken together. A problem with a
 * single key tile has none to miss. Tiles of packed sequences are counted within each, and those of one number are pooled over
 * all sequences.
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
