import {
  visibleKeys,
  type KeyRange,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { tileQueries } from '../fa4/configuration.js';

/** Tiles that one CTA works on at a time; they share the range of key blocks. */
const tilesPerCta = 2;

/** One block of keys, as one tile of queries meets it. */
export interface KeyBlock {
  /** The first key, and how many of the block's keys exist. */
  readonly first: number;
  readonly keys: number;
  /** For each query of the tile the columns begin ≤ j < end of the block that it sees. */
  readonly visible: readonly KeyRange[];
}

/** Whether any query of the tile sees a key of the block. */
export function seesAKey({ visible }: KeyBlock): boolean {
  return visible.some(({ begin, end }) => begin < end);
}

/** A tile of queries of one head. */
export interface QueryTile {
  readonly first: number;
  readonly rows: number;
}

/** The tiles of queries of a head. */
export function queryTiles({ queries }: ProblemShape): QueryTile[] {
  return Array.from({ length: Math.ceil(queries / tileQueries) }, (_, tile) => ({
    first: tile * tileQueries,
    rows: Math.min(tileQueries, queries - tile * tileQueries),
  }));
}

/**
 * The other tile of a tile's CTA, both counted over the tiles of all heads; null for a CTA that has
 * only one.
 */
export function otherTileOfCta(tile: number, shape: ProblemShape): number | null {
  const tilesOfHead = queryTiles(shape).length;
  const within = tile % tilesOfHead;
  const other = within % tilesPerCta === 0 ? within + 1 : within - 1;
  return other < tilesOfHead ? tile - within + other : null;
}

/**
 * The blocks of keys that a tile's CTA visits, in its order: from the last to the first, every block
 * in which any query of the CTA's two tiles sees a key. Source: BlockInfo.get_n_block_min_max in
 * flash_attn/cute/block_info.py.
 *
 * @param mask the keys that a query sees, within the blocks visited; default what the problem says
 */
export function keyBlocks(
  problem: Problem,
  shape: ProblemShape,
  tile: QueryTile,
  blockKeys: number,
  mask: typeof visibleKeys = visibleKeys,
): KeyBlock[] {
  const ctaFirst = Math.floor(tile.first / (tilesPerCta * tileQueries)) * tilesPerCta * tileQueries;
  const ctaLast = Math.min(ctaFirst + tilesPerCta * tileQueries, shape.queries) - 1;
  // Begin and end of what a query sees grow with the query.
  const { begin } = visibleKeys(problem, shape, ctaFirst);
  const { end } = visibleKeys(problem, shape, ctaLast);
  const ranges = Array.from({ length: tile.rows }, (_, row) =>
    mask(problem, shape, tile.first + row),
  );
  const blocks: KeyBlock[] = [];
  for (
    let block = Math.ceil(end / blockKeys) - 1;
    block >= Math.floor(begin / blockKeys);
    block--
  ) {
    const first = block * blockKeys;
    const within = (key: number): number => Math.min(Math.max(key - first, 0), blockKeys);
    blocks.push({
      first,
      keys: Math.min(blockKeys, shape.keys - first),
      visible: ranges.map((range) => ({ begin: within(range.begin), end: within(range.end) })),
    });
  }
  return blocks;
}
