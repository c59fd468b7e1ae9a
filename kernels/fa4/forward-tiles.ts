import { formats, patternsOf } from '../../src/formats/index.js';
import type { Problem, ProblemShape, Tensor } from '../../src/problem.js';
import { keyBlocks, queryTiles, type KeyBlock } from './forward-blocks.js';

/**
 * One tile of queries on its way through the blocks of keys. All operands are bit patterns in the
 * format of the inputs; methods are called in this order, `block` once for each.
 */
export interface TileWork<Result> {
  /** Begins a tile with its queries, [rows × qkDim]. */
  readonly begin: (queries: Uint16Array, rows: number) => void;
  /** Works on a block's keys [keys × qkDim] and values [keys × vDim]. */
  readonly block: (block: KeyBlock, keys: Uint16Array, values: Uint16Array) => void;
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

/** The kernel's format of the problem's inputs, which `fa4Configuration` has checked. */
export function inputFormat({ q }: Problem): 'bf16' | 'fp16' {
  return q.format === 'bf16' ? 'bf16' : 'fp16';
}

/** Rows [first, first + rows) of a tensor with rows of `dim` elements, as bit patterns. */
function patternRows(data: Uint16Array, first: number, rows: number, dim: number): Uint16Array {
  return data.subarray(first * dim, (first + rows) * dim);
}

/**
 * The tiles of a problem, each taken through the blocks of keys that its CTA visits.
 *
 * @param work does a tile's work, one tile after another
 */
export function forwardTiles<Result>(
  problem: Problem,
  shape: ProblemShape,
  blockKeys: number,
  work: () => TileWork<Result>,
): ForwardTiles<Result> {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const tilesOfHead = queryTiles(shape);
  const patterns = ({ data, format }: Tensor): Uint16Array =>
    patternsOf(data, formats[format]) as Uint16Array;
  const [q, k, v] = [patterns(problem.q), patterns(problem.k), patterns(problem.v)];
  const place = (tile: number) => ({
    head: Math.floor(tile / tilesOfHead.length),
    queryTile: tilesOfHead[tile % tilesOfHead.length]!,
  });
  return {
    tiles: batch * heads * tilesOfHead.length,
    rowsOf: (tile) => {
      const { head, queryTile } = place(tile);
      return { first: head * queries + queryTile.first, rows: queryTile.rows };
    },
    runTile: (tile) => {
      const { head, queryTile } = place(tile);
      const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      const { first, rows } = queryTile;
      const { begin, block, finish } = work();
      begin(patternRows(q, head * queries + first, rows, qkDim), rows);
      for (const keyBlock of keyBlocks(problem, shape, queryTile, blockKeys)) {
        const row = kvHead * keys + keyBlock.first;
        block(
          keyBlock,
          patternRows(k, row, keyBlock.keys, qkDim),
          patternRows(v, row, keyBlock.keys, vDim),
        );
      }
      return finish();
    },
  };
}
