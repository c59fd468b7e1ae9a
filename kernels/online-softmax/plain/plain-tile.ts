import { addFloat32, multiplyFloat32 } from '../../../src/arith/index.js';
import { decode, encode, formats } from '../../../src/formats/index.js';
import {
  conversions,
  tensorCoreProduct,
  type MatrixProduct,
  type TensorCoreArithmetic,
} from '../../../src/hardware/index.js';
import { bitsOf, type InputPatterns, roundingConversions, warpRows } from '../units.js';
import { blockMmas, type ForwardTile, type TileDimensions } from '../query-tiles.js';
import { maskScores, seesAKey } from '../key-blocks.js';
import { changeScores } from '../score-change.js';
import { filledDim, polynomialColumnsOf, type Recipe } from '../recipe.js';
import { rowSumLaws, warpColumns } from '../row-sums.js';
import { recipeSteps, type ForwardSteps, type StepBlock } from '../steps.js';
import { columnsOf, padded, transposed } from './pattern-matrix.js';

const { fp32 } = formats;

function noCounts() {
  return {
    rowRescales: 0,
    rowRescalesSkipped: 0,
    warpRescales: 0,
    warpRescalesSkipped: 0,
    polynomialLanes: 0,
    hardwareLanes: 0,
    mmas: 0,
  };
}

/** Deviations of a plain tile from the kernel, or from its usual means. */
interface PlainTileOptions {
  /** Steps in place of the kernel's. */
  readonly steps?: Partial<ForwardSteps>;
  /** Computes the matrix products; default `tensorCoreProduct`. */
  readonly product?: (arithmetic: TensorCoreArithmetic, product: MatrixProduct) => Uint32Array;
}

/**
 * The forward of a recipe on one tile, instruction by instruction: the definition, for reading and for
 * checking, of the results that `createForwardTile` computes much faster. The steps between the matrix
 * products are those of steps.ts.
 */
export function createPlainForwardTile(
  recipe: Recipe,
  { qkDim, vDim }: TileDimensions,
  options: PlainTileOptions = {},
): ForwardTile {
  const { format, outFormat, tensorCore: arithmetic, finish, scoreChange } = recipe;
  const { keys: blockKeys } = recipe.tiling;
  const { product = tensorCoreProduct } = options;
  const steps: ForwardSteps = { ...recipeSteps(recipe), ...options.steps };
  const rowSum = rowSumLaws[recipe.rowSum];
  const threads = rowSum.columnsOfThreads(blockKeys);
  const normalisesBlocks = finish.normalise === 'after-every-block';
  const { productsPerSum } = arithmetic;
  const inner = filledDim(recipe, qkDim);
  const toOut = conversions[roundingConversions[outFormat]];
  const Weights = bitsOf(format) === 8 ? Uint8Array : Uint16Array;
  const polynomials = polynomialColumnsOf(recipe).filter(Boolean).length;

  let rows = 0;
  let logit = -Infinity;
  let index = 0;
  let hasSeenKeys = false;
  let queries: InputPatterns = new Uint16Array();
  /** The kept value of each row: its maximum, or the LSE where every block is normalised. */
  let max: number[] = [];
  /** Sums of each row's threads, and the values that the last block began them with. */
  let start: number[][] = [];
  let sum: number[][] = [];
  let alphas: readonly number[] = [];
  let out: Uint32Array = new Uint32Array();
  let rescales = new Int32Array();
  let counters = noCounts();

  /** The weights of one row and the factor α of the earlier sums. */
  function softmaxStep(row: number, scores: readonly number[], block: StepBlock) {
    const isFirst = index === 0;
    const now = scores.reduce(steps.larger, isFirst ? -Infinity : steps.keptMaximum(max[row]));
    const { stored, subtracted, alpha, isSkipped } = steps.rowMaximum(max[row], now, isFirst);
    if (!isFirst && hasSeenKeys) {
      if (isSkipped) counters.rowRescalesSkipped++;
      else if (alpha < 1) {
        counters.rowRescales++;
        rescales[row]++;
      }
    }
    max[row] = stored;
    const weights = scores.map((s, j) =>
      steps.exponential(steps.exponent(s, subtracted), j, block),
    );
    return { weights, alpha };
  }

  /** Multiplies the output of every warp that has to rescale. */
  function rescaleOutput(alphas: readonly number[], block: StepBlock): void {
    const factors = steps.outputAlphas(alphas, block);
    for (let first = 0; first < rows; first += warpRows) {
      const warp = factors.slice(first, first + warpRows);
      if (!steps.rescalesWarp(warp)) {
        if (hasSeenKeys) counters.warpRescalesSkipped++;
        continue;
      }
      if (hasSeenKeys) counters.warpRescales++;
      for (let i = first * vDim; i < (first + warp.length) * vDim; i++)
        out[i] = encode(fp32, multiplyFloat32(decode(fp32, out[i]), factors[Math.floor(i / vDim)]));
    }
  }

  /** O += P·V. */
  function addValues(weights: InputPatterns, values: InputPatterns): void {
    const columns = transposed(
      padded(values, vDim, { rows: blockKeys, columns: vDim }),
      blockKeys,
      vDim,
    );
    const chained = (
      a: InputPatterns,
      bTransposed: InputPatterns,
      k: number,
      c: Uint32Array,
    ): Uint32Array =>
      product(arithmetic, {
        m: rows,
        n: vDim,
        k,
        aFormat: format,
        bFormat: format,
        a,
        bTransposed,
        c,
      });
    if (recipe.values.sum === 'chain') {
      out = chained(weights, columns, blockKeys, out).map(steps.accumulated);
      return;
    }
    for (const share of warpColumns(blockKeys)) {
      const of = (matrix: InputPatterns): InputPatterns => columnsOf(matrix, blockKeys, share);
      const added = chained(of(weights), of(columns), share.length, new Uint32Array(rows * vDim));
      out = out.map((bits, i) =>
        encode(fp32, addFloat32(decode(fp32, bits), decode(fp32, added[i]))),
      );
    }
  }

  /** A row's sum; where O is normalised after every block, α is the weight of all blocks before. */
  function totalSum(row: number): number {
    const total = rowSum.total(sum[row]);
    return normalisesBlocks && index > 0 ? addFloat32(total, alphas[row]) : total;
  }

  function normalised(): number[] {
    const factors = sum.map((_, row) => steps.normaliser(totalSum(row), rowSum.total(start[row])));
    return Array.from(out, (bits, i) =>
      multiplyFloat32(decode(fp32, bits), factors[Math.floor(i / vDim)]),
    );
  }

  function logSumExp(row: number): number {
    return steps.logSumExp(steps.logSumExp2(max[row], totalSum(row)));
  }

  /** Adds the sink to every row. Kernels with one have one thread a row. */
  function addSink(): void {
    if (logit === -Infinity) return;
    for (let row = 0; row < rows; row++) {
      const { maximum, sum: total } = steps.withSink(max[row], sum[row][0], logit);
      max[row] = maximum;
      sum[row] = [total];
    }
  }

  /** Normalises O after a block; a row goes on with its LSE in place of its maximum. */
  function normaliseBlock(): void {
    out = Uint32Array.from(normalised(), (x) => encode(fp32, x));
    max = max.map((_, row) => logSumExp(row));
  }

  /** The LSE as bits, since a NaN has them too. */
  function logSumExps(): Float32Array {
    const bits = Uint32Array.from(sum, (_, row) =>
      encode(fp32, normalisesBlocks ? max[row] : logSumExp(row)),
    );
    return new Float32Array(bits.buffer);
  }

  function finished(): number[] {
    return normalisesBlocks ? Array.from(out, (bits) => decode(fp32, bits)) : normalised();
  }

  return {
    begin: (source, count, sink) => {
      rows = count;
      logit = sink;
      index = 0;
      hasSeenKeys = false;
      queries = padded(source, qkDim, { rows, columns: inner });
      max = Array.from({ length: rows }, () => -Infinity);
      sum = Array.from({ length: rows }, () => threads.map(() => 0));
      start = sum.slice();
      out = new Uint32Array(rows * vDim);
      rescales = new Int32Array(rows);
      counters = noCounts();
    },
    block: (keyBlock, keys, values) => {
      const { visible } = keyBlock;
      const isMasked =
        keyBlock.interrupted.length > 0 ||
        visible.some(({ begin, end }) => begin > 0 || end < blockKeys);
      const block: StepBlock = { ...keyBlock, index, isMasked };
      const scoreBits = product(arithmetic, {
        m: rows,
        n: blockKeys,
        k: inner,
        aFormat: format,
        bFormat: format,
        a: queries,
        bTransposed: padded(keys, qkDim, { rows: blockKeys, columns: inner }),
        c: new Uint32Array(rows * blockKeys),
      });
      const blockScores = Float64Array.from(scoreBits, steps.score);
      if (scoreChange !== null) changeScores(blockScores, scoreChange, keyBlock);
      maskScores(blockScores, keyBlock, blockKeys);
      const weights = new Weights(rows * blockKeys);
      alphas = visible.map((_, row) => {
        const scores = blockScores.subarray(row * blockKeys, (row + 1) * blockKeys);
        const { weights: p, alpha } = softmaxStep(row, Array.from(scores), block);
        p.forEach((x, j) => (weights[row * blockKeys + j] = steps.weight(x, block)));
        start[row] = threads.map(([first], t) => steps.startingSum(sum[row][t], alpha, p[first]));
        sum[row] = threads.map((columns, t) =>
          steps.rowSum(
            start[row][t],
            columns.map((j) => p[j]),
            block,
          ),
        );
        return alpha;
      });
      counters.polynomialLanes += rows * polynomials;
      counters.hardwareLanes += rows * (blockKeys - polynomials);
      counters.mmas += blockMmas(inner, blockKeys, vDim, productsPerSum);
      if (index > 0) rescaleOutput(alphas, block);
      addValues(weights, values);
      if (normalisesBlocks) normaliseBlock();
      index++;
      hasSeenKeys ||= seesAKey(keyBlock);
    },
    finish: () => {
      addSink();
      const out = Uint16Array.from(finished(), (x) => toOut.evaluate(encode(fp32, x)));
      return { out, lse: logSumExps(), rescales, counters };
    },
    finishPartial: () => {
      addSink();
      return { out: Float32Array.from(finished()), lse: logSumExps(), rescales, counters };
    },
  };
}
