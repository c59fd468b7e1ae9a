import { decodeToFloat64, formats, patternsOf } from '../../formats/index.js';
import {
  architectures,
  createTensorCoreTile,
  findTensorCoreArithmetic,
  type MufuArchitecture,
} from '../../hardware/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import type { WeightFormat } from '../limits/weight-formats.js';

const tileQueries = 128;

/** Facts about one block of keys that the rows of a tile need. */
interface BlockScores {
  /** [rows]: the largest raw score S = Q·Kᵀ of the block, as the tensor cores compute it; fp32. */
  readonly maxima: Float64Array;
  /** [rows]: Σ 2^((s − maximum)·c) over the block's keys, in fp64. */
  readonly sums: Float64Array;
  /** [rows × vDim]: Σ 2^((s − maximum)·c)·|v|, in fp64. */
  readonly outputs: Float64Array;
}

/** The blocks of keys of one tile of queries, in the order of the kernel: from the last to the first. */
export interface TileScores {
  readonly rows: number;
  readonly blocks: readonly BlockScores[];
}

/**
 * The scores of a problem of one head without masks, block by block of `blockKeys` keys, with the matrix
 * product of the architecture on inputs of the problem's format.
 * @param scale softmax scale · log2 e, an fp32 number above 0
 */
export function* blockScores(
  problem: Problem,
  architecture: MufuArchitecture,
  blockKeys: number,
  scale: number,
): Generator<TileScores> {
  const { queries, keys, qkDim, vDim } = problemShape(problem);
  const name = problem.q.format as WeightFormat;
  const arithmetic = findTensorCoreArithmetic({
    instruction: architectures[architecture].tensorCore,
    architecture,
    a: name,
  });
  const inner = arithmetic.productsPerSum * Math.ceil(qkDim / arithmetic.productsPerSum);
  const tile = createTensorCoreTile(arithmetic, {
    rows: tileQueries,
    columns: blockKeys,
    inner,
    aFormat: name,
    bFormat: name,
  });
  const [q, k] = [problem.q, problem.k].map(({ data }) => patternsOf(data, formats[name]));
  const v = decodeToFloat64(problem.v.data, formats[name]).map(Math.abs);
  /** Loads rows from `first` on, in rows of `inner`, with zeros beyond the end. */
  const load = (target: typeof tile.a, source: typeof q, first: number, count: number): void => {
    target.fill(0);
    for (let row = 0; row < count; row++)
      target.set(
        source.subarray((first + row) * qkDim, (first + row + 1) * qkDim) as Uint16Array,
        row * inner,
      );
  };
  for (let firstRow = 0; firstRow < queries; firstRow += tileQueries) {
    const rows = Math.min(tileQueries, queries - firstRow);
    const blocks: BlockScores[] = [];
    load(tile.a, q, firstRow, rows);
    tile.packA();
    for (let block = Math.ceil(keys / blockKeys) - 1; block >= 0; block--) {
      const first = block * blockKeys;
      const count = Math.min(blockKeys, keys - first);
      load(tile.b, k, first, count);
      tile.packTransposedB();
      tile.c.fill(0);
      tile.multiplyAccumulate();
      const setting = { rows, count, stride: blockKeys, vDim, scale };
      blocks.push(summarise(tile.c, v.subarray(first * vDim), setting));
    }
    yield { rows, blocks };
  }
}

/** The sizes of a block of raw scores, and their scale. */
interface BlockSetting {
  readonly rows: number;
  readonly count: number;
  /** Distance between rows, whose scores are contiguous. */
  readonly stride: number;
  readonly vDim: number;
  readonly scale: number;
}

function summarise(
  scores: ArrayLike<number>,
  values: Float64Array,
  { rows, count, stride, vDim, scale }: BlockSetting,
): BlockScores {
  const maxima = new Float64Array(rows).fill(-Infinity);
  const sums = new Float64Array(rows);
  const outputs = new Float64Array(rows * vDim);
  for (let row = 0; row < rows; row++) {
    const at = row * stride;
    for (let j = 0; j < count; j++) maxima[row] = Math.max(maxima[row], scores[at + j]);
    for (let j = 0; j < count; j++) {
      const weight = 2 ** ((scores[at + j] - maxima[row]) * scale);
      sums[row] += weight;
      if (weight > 0)
        for (let c = 0; c < vDim; c++) outputs[row * vDim + c] += weight * values[j * vDim + c];
    }
  }
  return { maxima, sums, outputs };
}
