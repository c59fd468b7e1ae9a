import { formats, patternsOf } from '../../src/formats/index.js';
import type { KeyRange, Problem, ProblemShape, Tensor } from '../../src/problem/index.js';
import type { InputPatterns } from './formats.js';
import { intervalMask, keyBlocks, queryTiles, type KeyBlock, type Tiling } from './key-blocks.js';

/** How operands find their way to a tile of queries. */
export interface ForwardPaths {
  /**
   * The keys begin ≤ j < end that a query sees, j up to the end of the last block; null for what the
   * problem's mask says.
   */
  readonly visibleKeys: ((problem: Problem, shape: ProblemShape, query: number) => KeyRange) | null;
  /** The kv head, counted over [batch · kv heads], that a head of [batch · heads] reads. */
  readonly kvHead: (head: number, shape: ProblemShape) => number;
  /** Of the blocks in the order visited: the one whose keys, or values, are read for block `index`. */
  readonly keysFrom: (index: number, blocks: number) => number;
  readonly valuesFrom: (index: number, blocks: number) => number;
}

/** The paths of a correct forward. */
export const kernelPaths: ForwardPaths = {
  visibleKeys: null,
  kvHead: (head, { heads, kvHeads, groupSize }) =>
    Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize),
  keysFrom: (index) => index,
  valuesFrom: (index) => index,
};

/**
 * One tile of queries on its way through the blocks of keys. All operands are bit patterns in the
 * format of the inputs; methods are called in this order, `block` once for each.
 */
export interface TileWork<Result, Patterns extends InputPatterns = Uint16Array> {
  /** Begins a tile with its queries, [rows × qkDim]. */
  readonly begin: (queries: Patterns, rows: number) => void;
  /** Works on a block's keys [keys × qkDim] and values [keys × vDim]. */
  readonly block: (block: KeyBlock, keys: Patterns, values: Patterns) => void;
  readonly finish: () => Result;
}

/** A problem cut into tiles of queries that do not depend on one another. */
export interface ForwardTiles<Result> {
  /** How many tiles there are: those of the first head, then those of the next. */
  readonly tiles: number;
  /** Where the rows of a tile lie among all rows [batch · heads · queries]. */
  readonly rowsOf: (tile: number) => { readonly first: number; readonly rows: number };
  /** Computes one tile. */
  readonly runTile: (tile: number) => Result;
}

/** Rows [first, first + rows) of a tensor with rows of `dim` elements, as bit patterns. */
function patternRows<Patterns extends InputPatterns>(
  data: Patterns,
  first: number,
  rows: number,
  dim: number,
): Patterns {
  return data.subarray(first * dim, (first + rows) * dim) as Patterns;
}

/**
 * The tiles of a problem, each taken through the blocks of keys that its CTA visits.
 *
 * @param work does a tile's work, one tile after another; told which
 * @param paths how operands find their tile; default as the kernel does
 */
export function forwardTiles<Result, Patterns extends InputPatterns = Uint16Array>(
  problem: Problem,
  shape: ProblemShape,
  tiling: Tiling,
  work: (tile: number) => TileWork<Result, Patterns>,
  paths: ForwardPaths = kernelPaths,
): ForwardTiles<Result> {
  const { batch, heads, queries, keys, qkDim, vDim } = shape;
  const tilesOfHead = queryTiles(shape, tiling.queries);
  const mask = intervalMask(problem, shape);
  const { visibleKeys } = paths;
  const seen =
    visibleKeys === null
      ? mask
      : (_head: number, query: number) => visibleKeys(problem, shape, query);
  const patterns = ({ data, format }: Tensor): Patterns =>
    patternsOf(data, formats[format]) as Patterns;
  const [q, k, v] = [patterns(problem.q), patterns(problem.k), patterns(problem.v)];
  const place = (tile: number) => ({
    head: Math.floor(tile / tilesOfHead.length),
    queryTile: tilesOfHead[tile % tilesOfHead.length],
  });
  return {
    tiles: batch * heads * tilesOfHead.length,
    rowsOf: (tile) => {
      const { head, queryTile } = place(tile);
      return { first: head * queries + queryTile.first, rows: queryTile.rows };
    },
    runTile: (tile) => {
      const { head, queryTile } = place(tile);
      const { first, rows } = queryTile;
      const kvRow = paths.kvHead(head, shape) * keys;
      const { begin, block, finish } = work(tile);
      begin(patternRows(q, head * queries + first, rows, qkDim), rows);
      const blocks = keyBlocks(shape, { head, queryTile }, tiling, mask, seen);
      const rowsOf = (tensor: Patterns, index: number, dim: number): Patterns =>
        patternRows(tensor, kvRow + blocks[index].first, blocks[index].keys, dim);
      blocks.forEach((keyBlock, index) =>
        block(
          keyBlock,
          rowsOf(k, paths.keysFrom(index, blocks.length), qkDim),
          rowsOf(v, paths.valuesFrom(index, blocks.length), vDim),
        ),
      );
      return finish();
    },
  };
}
