import { allocateStorage, decodeTensor, formats, patternsOf } from '../../src/formats/index.js';
import {
  problemMask,
  scoreLaw,
  type KeyRange,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';
import type { ForwardOutputs } from '../backward/model.js';
import {
  checkListedBlocks,
  keyBlocks,
  queryTiles,
  type BlockSources,
  type KeyBlock,
  type QueryMask,
  type Tiling,
} from './key-blocks.js';
import type { InputPatterns, OutFormat } from './units.js';

/** Choices of the operands that a tile of queries reads. */
export interface ForwardPaths {
  /** The keys begin ≤ j < end that a query sees, j up to the end of the last block; null for the problem's mask. */
  readonly visibleKeys: ((problem: Problem, shape: ProblemShape, query: number) => KeyRange) | null;
  /** The kv head, counted over [batch · kv heads], that a head of [batch · heads] reads. */
  readonly kvHead: (head: number, shape: ProblemShape) => number;
  /** Index, in the order visited, of the block whose keys, or values, are read for block `index`. */
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
  /** Begins a tile with its queries, [rows × qkDim], and the logit of their sink, −∞ for none. */
  readonly begin: (queries: Patterns, rows: number, sink: number) => void;
  /** Works on a block's keys [keys × qkDim] and values [keys × vDim]. */
  readonly block: (block: KeyBlock, keys: Patterns, values: Patterns) => void;
  readonly finish: () => Result;
}

/** A problem cut into tiles of queries that do not depend on one another. */
export interface ForwardTiles<Result> {
  /** Number of tiles: those of the first head, then those of the next. */
  readonly tiles: number;
  /** Position of a tile's rows among all rows [batch · heads · queries]. */
  readonly rowsOf: (tile: number) => { readonly first: number; readonly rows: number };
  /** Computes one tile. */
  readonly runTile: (tile: number) => Result;
}

/**
 * Counts of a tile's work. Rescales are counted after the first block in which the tile sees a key:
 * before, there is nothing to rescale.
 */
export interface ForwardCounters {
  /** Rows whose sums were rescaled, over all blocks. */
  readonly rowRescales: number;
  /** Rows whose rescale the threshold skipped although their maximum had grown. */
  readonly rowRescalesSkipped: number;
  /** Warps (32 rows) whose output was multiplied, and those whose multiplication was skipped. */
  readonly warpRescales: number;
  readonly warpRescalesSkipped: number;
  /** Elements of P computed by the polynomial and by the hardware unit, masked ones included. */
  readonly polynomialLanes: number;
  readonly hardwareLanes: number;
  /** Matrix products in units of one instruction: 128 × 128 × 16 each. */
  readonly mmas: number;
}

/** Head dimensions of a tile. */
export interface TileDimensions {
  readonly qkDim: number;
  readonly vDim: number;
}

/** The results of a tile of queries. */
export interface ForwardTileResult {
  /** [rows × vDim] bit patterns in the output's format. */
  readonly out: Uint16Array;
  /** [rows], natural logarithm. */
  readonly lse: Float32Array;
  /** [rows]: number of rescales of each row's sums. */
  readonly rescales: Int32Array;
  readonly counters: ForwardCounters;
}

/** The results of a tile of queries over a part of their keys. */
export interface PartialTileResult extends Omit<ForwardTileResult, 'out'> {
  /** [rows × vDim] normalised, not rounded to the output's format. */
  readonly out: Float32Array;
}

/** The forward's work on tiles. */
export interface ForwardTile extends TileWork<ForwardTileResult, InputPatterns> {
  /** In place of `finish`, for a split. */
  readonly finishPartial: () => PartialTileResult;
}

const mmaRows = 128;

/** Matrix products of 128 rows, 128 columns and `sumLength` terms that a block takes. */
export function blockMmas(qkDim: number, keys: number, vDim: number, sumLength: number): number {
  const scores = (qkDim / sumLength) * Math.ceil(keys / mmaRows);
  const outputs = (keys / sumLength) * Math.ceil(vDim / mmaRows);
  return scores + outputs;
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

/** Keys that causal and window masks leave, ignoring everything else that hides keys. */
function diagonalMask(problem: Problem, shape: ProblemShape): QueryMask {
  const { q, k, v, scale, causal, window, softcap, sequences } = problem;
  const plain = { q, k, v, scale, causal, window, softcap };
  return problemMask(sequences === undefined ? plain : { ...plain, sequences }, shape).ranges;
}

/** The blocks of a problem, with the keys that a variation sees in place of the mask. */
function blockSources(
  problem: Problem,
  shape: ProblemShape,
  tiling: Tiling,
  { visibleKeys }: ForwardPaths,
): BlockSources {
  const varied = (_head: number, query: number): readonly KeyRange[] => {
    const range = visibleKeys?.(problem, shape, query);
    return range === undefined || range.begin >= range.end ? [] : [range];
  };
  return {
    problem,
    shape,
    tiling,
    diagonal: diagonalMask(problem, shape),
    seen: visibleKeys === null ? problemMask(problem, shape).ranges : varied,
    addend: scoreLaw(problem, shape).addend,
  };
}

/**
 * The tiles of a problem, each taken through the blocks of keys that its CTA visits.
 *
 * @param work does a tile's work, one tile after another; called with its number
 * @param paths choice of the operands of a tile; default the kernel's
 * @throws RequestError for a block mask that does not fit the tiling
 */
export function forwardTiles<Result, Patterns extends InputPatterns = Uint16Array>(
  problem: Problem,
  shape: ProblemShape,
  tiling: Tiling,
  work: (tile: number) => TileWork<Result, Patterns>,
  paths: ForwardPaths = kernelPaths,
): ForwardTiles<Result> {
  const { batch, heads, queries, keys, qkDim, vDim } = shape;
  const tilesOfHead = queryTiles(problem, shape, tiling.queries);
  checkListedBlocks(problem, shape, tiling);
  const sources = blockSources(problem, shape, tiling, paths);
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
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
      const sink = sinks === null ? -Infinity : Math.fround(sinks[head % heads]);
      begin(patternRows(q, head * queries + first, rows, qkDim), rows, sink);
      const blocks = keyBlocks(sources, head, queryTile);
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

/** Runs all tiles of a forward; the outputs stored for a backward, O in its format and the LSE. */
export function storedForward(
  { batch, heads, queries, vDim }: ProblemShape,
  outFormat: OutFormat,
  { tiles, rowsOf, runTile }: Pick<ForwardTiles<ForwardTileResult>, 'tiles' | 'rowsOf' | 'runTile'>,
): ForwardOutputs {
  const format = formats[outFormat];
  const data = allocateStorage(format, batch * heads * queries * vDim);
  const patterns = patternsOf(data, format);
  const lse = new Float32Array(batch * heads * queries);
  for (let tile = 0; tile < tiles; tile++) {
    const { first } = rowsOf(tile);
    const result = runTile(tile);
    patterns.set(result.out, first * vDim);
    lse.set(result.lse, first);
  }
  return {
    out: { format: format.name, shape: [batch, heads, queries, vDim], data },
    lse: { format: 'fp32', shape: [batch, heads, queries], data: lse },
  };
}
