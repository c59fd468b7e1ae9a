import { formats, patternsOf } from '../../src/formats/index.js';
import { lazily } from '../../src/lazily.js';
import { problemShape, type Problem, type ProblemShape, type Tensor } from '../../src/problem.js';
import { keyBlocks, queryTiles } from './forward-blocks.js';
import { fa4Configuration, type Fa4Configuration } from './forward-configuration.js';
import { createPlainForwardTile } from './forward-plain-tile.js';
import type { ForwardTile, ForwardTileResult } from './forward-tile.js';
import { createForwardTile } from './forward-webassembly-tile.js';

/** The forward of one problem, cut into tiles of queries that do not depend on one another. */
export interface Fa4Forward {
  readonly shape: ProblemShape;
  readonly configuration: Fa4Configuration;
  /** How many tiles there are: those of the first head, then those of the next. */
  readonly tiles: number;
  /** Where the rows of a tile lie among all rows [batch · heads · queries]. */
  readonly rowsOf: (tile: number) => { readonly first: number; readonly rows: number };
  /** Computes one tile. */
  readonly runTile: (tile: number) => ForwardTileResult;
}

export interface Fa4ForwardOptions {
  /** What to choose otherwise than FlashAttention-4 would for this problem. */
  readonly configuration?: Partial<Fa4Configuration>;
  /** `plain`: instruction by instruction, thousands of times slower; default `webassembly`. */
  readonly execution?: 'webassembly' | 'plain';
}

/** Rows [first, first + rows) of a tensor with rows of `dim` elements, as bit patterns. */
function patternRows(data: Uint16Array, first: number, rows: number, dim: number): Uint16Array {
  return data.subarray(first * dim, (first + rows) * dim);
}

/**
 * FlashAttention-4's forward on a problem, bit for bit: the same blocks in the same order, the same
 * instructions with the same rounding. Memory beyond inputs and outputs is that of one tile.
 *
 * Evidence: with sm_90's tensor cores, the outputs and LSEs that an H200 computed by the same
 * operations (fixtures/attention); what differs on Blackwell is told by `fa4Evidence`.
 *
 * @throws RequestError for a problem that the kernel does not take and for a configuration out of
 * range.
 */
export function createFa4Forward(problem: Problem, options: Fa4ForwardOptions = {}): Fa4Forward {
  const shape = problemShape(problem);
  const configuration = fa4Configuration(problem, shape, options.configuration);
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const format = problem.q.format === 'bf16' ? 'bf16' : 'fp16';
  const scale = Math.fround(problem.scale * Math.LOG2E);
  const create = options.execution === 'plain' ? createPlainForwardTile : createForwardTile;
  // Made when it is needed: not where other threads do the work.
  const engine = lazily((): ForwardTile => create(configuration, format, { qkDim, vDim }, scale));
  const tilesOfHead = queryTiles(shape);
  const patterns = ({ data }: Tensor): Uint16Array =>
    patternsOf(data, formats[format]) as Uint16Array;
  const [q, k, v] = [patterns(problem.q), patterns(problem.k), patterns(problem.v)];
  const place = (tile: number) => {
    const head = Math.floor(tile / tilesOfHead.length);
    return { head, queryTile: tilesOfHead[tile % tilesOfHead.length]! };
  };

  return {
    shape,
    configuration,
    tiles: shape.batch * heads * tilesOfHead.length,
    rowsOf: (tile) => {
      const { head, queryTile } = place(tile);
      return { first: head * queries + queryTile.first, rows: queryTile.rows };
    },
    runTile: (tile) => {
      const { head, queryTile } = place(tile);
      const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      const { first, rows } = queryTile;
      engine().begin(patternRows(q, head * queries + first, rows, qkDim), rows);
      for (const block of keyBlocks(problem, shape, queryTile, configuration.blockKeys)) {
        const row = kvHead * keys + block.first;
        engine().block(
          block,
          patternRows(k, row, block.keys, qkDim),
          patternRows(v, row, block.keys, vDim),
        );
      }
      return engine().finish();
    },
  };
}
