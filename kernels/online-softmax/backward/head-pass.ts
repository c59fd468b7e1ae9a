import {
  decodeToFloat32,
  decodeToFloat64,
  formats,
  patternsOf,
  type PatternArray,
  type Tensor,
} from '../../../src/formats/index.js';
import {
  clipRanges,
  problemMask,
  type Mask,
  type Problem,
  type ProblemShape,
} from '../../../src/problem/index.js';
import { keyBlockVisits, type KeyBlockVisits, type Stretch } from './blocks.js';
import type { KeyBlockWork, QueryBlock } from './key-block.js';
import type { BackwardRecipe } from './recipe.js';
import { base2LogSumExp, rowProductSum } from './row-values.js';

/**
 * Tensors that the backward reads beside the problem, checked: dO and O [batch, heads, queries, vDim], LSE [batch, heads,
 * queries].
 */
export interface BackwardTensors {
  readonly dout: Tensor;
  readonly out: Tensor;
  readonly lse: Tensor;
}

/** Callbacks for the results of a pass over a head. */
export interface PassResults {
  /**
   * A tile of dQ, [count × qkDim] fp32, valid until the next, and the index of its block of keys in the sequence; in the order of the
   * adds to its queries.
   */
  readonly tile?: (queries: Stretch, tile: Float32Array, keyBlock: number) => void;
  /** dK and dV of a block of keys from this head. */
  readonly keys?: (
    keys: Stretch,
    sums: { readonly dk: Float32Array; readonly dv: Float32Array },
  ) => void;
}

/** The passes over the query heads of a problem. */
export interface HeadPasses {
  /**
   * Runs heads of one group, counted over [batch · heads]: in each block of keys one head after the other, in one chain of dK and
   * dV.
   * @param only first query of the only block of queries to run; default all
   */
  readonly run: (heads: readonly number[], results: PassResults, only?: number) => void;
  /**
   * Runs a head for its dQ alone, a chain over the blocks of keys that a block of queries meets; calls back with each block of
   * queries, and its dQ, [count × qkDim] fp32, valid until the next.
   */
  readonly runQueries: (head: number, done: (queries: Stretch, tile: Float32Array) => void) => void;
  readonly queryBlocks: readonly Stretch[];
  /** Pairs of blocks that a whole pass over a head works on. */
  readonly pairs: number;
}

/** LSE·log2 e and D of the rows of a head. */
interface RowValues {
  readonly logSumExp2: Float32Array;
  readonly productSums: Float32Array;
}

function rowValues(
  { productSum }: BackwardRecipe,
  { queries, vDim }: ProblemShape,
  { dout, out, lse }: BackwardTensors,
  head: number,
): RowValues {
  const [first, end] = [head * queries, (head + 1) * queries];
  const elements = ({ data, format }: Tensor): Float64Array =>
    decodeToFloat64(data, formats[format], undefined, first * vDim, end * vDim);
  const [ofOut, ofDout] = [elements(out), elements(dout)];
  const row = (of: Float64Array, query: number): Float64Array =>
    of.subarray(query * vDim, (query + 1) * vDim);
  const logSumExps = decodeToFloat32(lse.data, formats[lse.format], undefined, first, end);
  return {
    logSumExp2: logSumExps.map(base2LogSumExp),
    productSums: Float32Array.from({ length: queries }, (_, query) =>
      rowProductSum(productSum, row(ofOut, query), row(ofDout, query)),
    ),
  };
}

/** The blocks of queries of all visits, each once, ascending. */
function allQueryBlocks(visits: readonly KeyBlockVisits[]): readonly Stretch[] {
  const blocks = new Map<number, Stretch>();
  for (const { queryBlocks } of visits)
    for (const block of queryBlocks) blocks.set(block.first, block);
  return [...blocks.values()].sort((a, b) => a.first - b.first);
}

/** Reads blocks of rows of a tensor with heads of `length` rows of `dim` elements. */
function rowReader(
  { data }: Tensor,
  name: BackwardRecipe['format'],
  length: number,
  dim: number,
): (head: number, rows: Stretch) => Uint16Array {
  const patterns: PatternArray = patternsOf(data, formats[name]);
  return (head, { first, count }) => {
    const at = (head * length + first) * dim;
    return patterns.subarray(at, at + count * dim) as Uint16Array;
  };
}

/** The operands of pairs of blocks, by heads of [batch · heads], and for keys and values of [batch · kv heads]. */
interface BlockOperands {
  readonly keys: (kvHead: number, block: Stretch) => Uint16Array;
  readonly values: (kvHead: number, block: Stretch) => Uint16Array;
  readonly queryBlock: (
    head: number,
    rows: Stretch,
    block: Stretch,
    values: RowValues,
  ) => QueryBlock;
}

function blockOperands(
  problem: Problem,
  shape: ProblemShape,
  { format }: BackwardRecipe,
  { dout }: BackwardTensors,
): BlockOperands {
  const { queries, keys, qkDim, vDim } = shape;
  const mask: Mask = problemMask(problem, shape);
  const queriesOf = rowReader(problem.q, format, queries, qkDim);
  const doutOf = rowReader(dout, format, queries, vDim);
  return {
    keys: rowReader(problem.k, format, keys, qkDim),
    values: rowReader(problem.v, format, keys, vDim),
    queryBlock: (head, rows, block, values) => {
      const { first, count } = rows;
      return {
        rows: count,
        queries: queriesOf(head, rows),
        dout: doutOf(head, rows),
        logSumExp2: values.logSumExp2.subarray(first, first + count),
        productSums: values.productSums.subarray(first, first + count),
        visible: Array.from({ length: count }, (_, i) =>
          clipRanges(mask.ranges(head, first + i), block.first, block.first + block.count).map(
            ({ begin, end }) => ({ begin: begin - block.first, end: end - block.first }),
          ),
        ),
      };
    },
  };
}

/**
 * The passes of a recipe over the heads of a problem: blocks of keys, in each blocks of queries.
 *
 * @param work makes the work on blocks of keys; called once, when it is needed
 * @param diagonal as of `keyBlockVisits`
 */
export function createHeadPasses(
  problem: Problem,
  shape: ProblemShape,
  recipe: BackwardRecipe,
  tensors: BackwardTensors,
  { work, diagonal }: { readonly work: () => KeyBlockWork; readonly diagonal: boolean },
): HeadPasses {
  const { heads, kvHeads, groupSize } = shape;
  const visits = keyBlockVisits(problem, shape, recipe, diagonal);
  const operands = blockOperands(problem, shape, recipe, tensors);
  const kvHeadOf = (head: number): number =>
    Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);

  return {
    queryBlocks: allQueryBlocks(visits),
    pairs: visits.reduce((sum, { queryBlocks }) => sum + queryBlocks.length, 0),
    run: (ofGroup, results, only) => {
      const rows = ofGroup.map((head) => [head, rowValues(recipe, shape, tensors, head)] as const);
      const kvHead = kvHeadOf(ofGroup[0]);
      const keyBlock = work();
      for (const { keys: block, index, queryBlocks } of visits) {
        const blocks = queryBlocks.filter(({ first }) => only === undefined || first === only);
        if (only !== undefined && blocks.length === 0) continue;
        keyBlock.begin(operands.keys(kvHead, block), operands.values(kvHead, block));
        for (const [head, values] of rows)
          for (const some of blocks) {
            const tile = keyBlock.queries(operands.queryBlock(head, some, block, values));
            results.tile?.(some, tile, index);
          }
        if (results.keys !== undefined) results.keys(block, keyBlock.finish());
      }
    },
    runQueries: (head, done) => {
      const values = rowValues(recipe, shape, tensors, head);
      const kvHead = kvHeadOf(head);
      const keyBlock = work();
      for (const rows of allQueryBlocks(visits)) {
        let tile: Float32Array | null = null;
        for (const { keys: block, queryBlocks } of visits) {
          if (!queryBlocks.some(({ first }) => first === rows.first)) continue;
          keyBlock.begin(operands.keys(kvHead, block), operands.values(kvHead, block));
          tile = keyBlock.queries(operands.queryBlock(head, rows, block, values), tile !== null);
        }
        if (tile !== null) done(rows, tile);
      }
    },
  };
}
