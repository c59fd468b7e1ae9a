import {
  problemMask,
  spanOf,
  type KeyRange,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

/** How queries and keys are cut, and the order in which the pieces are visited. */
export interface Tiling {
  /** Queries of a tile. */
  readonly queries: number;
  /** Keys of a block. */
  readonly keys: number;
  /** Tiles that one CTA works on at a time; they share the range of key blocks. */
  readonly tilesPerCta: number;
  readonly order: 'last-first' | 'first-last';
}

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
interface QueryTile {
  readonly first: number;
  readonly rows: number;
}

/** The tiles of so many queries of a head. */
export function queryTiles({ queries }: ProblemShape, tileQueries: number): QueryTile[] {
  return Array.from({ length: Math.ceil(queries / tileQueries) }, (_, tile) => ({
    first: tile * tileQueries,
    rows: Math.min(tileQueries, queries - tile * tileQueries),
  }));
}

/**
 * The other tile of a tile's CTA, which works on two, both counted over the tiles of all heads; null for
 * a CTA that has only one.
 */
export function otherTileOfCta(
  tile: number,
  shape: ProblemShape,
  { queries, tilesPerCta }: Tiling,
): number | null {
  const tilesOfHead = queryTiles(shape, queries).length;
  const within = tile % tilesOfHead;
  const other = within % tilesPerCta === 0 ? within + 1 : within - 1;
  return other < tilesOfHead ? tile - within + other : null;
}

/** The one range of keys that a query of a head sees, head counted over [batch, heads]. */
type IntervalMask = (head: number, query: number) => KeyRange;

/**
 * The mask of a problem for kernels that know one range of keys a query, begin and end of which grow
 * with the query.
 * @returns a function that throws a RequestError for a query with several ranges
 */
export function intervalMask(problem: Problem, shape: ProblemShape): IntervalMask {
  const mask = problemMask(problem, shape);
  return (head, query) => {
    const ranges = mask.ranges(head, query);
    if (ranges.length > 1)
      throw new RequestError(
        `query ${query} sees ${ranges.length} ranges of keys; this kernel takes masks of one range`,
      );
    return spanOf(ranges);
  };
}

/**
 * The blocks of keys that a tile's CTA visits, in the recipe's order: every block in which any query of
 * the CTA's tiles sees a key.
 *
 * @param mask decides the blocks
 * @param seen the keys that a query sees in them
 */
export function keyBlocks(
  shape: ProblemShape,
  { head, queryTile }: { readonly head: number; readonly queryTile: QueryTile },
  { queries, keys, tilesPerCta, order }: Tiling,
  mask: IntervalMask,
  seen: IntervalMask = mask,
): KeyBlock[] {
  const ctaQueries = tilesPerCta * queries;
  const ctaFirst = Math.floor(queryTile.first / ctaQueries) * ctaQueries;
  const ctaLast = Math.min(ctaFirst + ctaQueries, shape.queries) - 1;
  // Begin and end of what a query sees grow with the query.
  const { begin } = mask(head, ctaFirst);
  const { end } = mask(head, ctaLast);
  const ranges = Array.from({ length: queryTile.rows }, (_, row) =>
    seen(head, queryTile.first + row),
  );
  const blocks: KeyBlock[] = [];
  for (let block = Math.ceil(end / keys) - 1; block >= Math.floor(begin / keys); block--) {
    const first = block * keys;
    const within = (key: number): number => Math.min(Math.max(key - first, 0), keys);
    blocks.push({
      first,
      keys: Math.min(keys, shape.keys - first),
      visible: ranges.map((range) => ({ begin: within(range.begin), end: within(range.end) })),
    });
  }
  return order === 'last-first' ? blocks : blocks.reverse();
}
