import { multiplyFloat32 } from '../../../src/arith/index.js';
import { decode, encode, formats } from '../../../src/formats/index.js';
import {
  conversions,
  tensorCoreProduct,
  type MatrixProduct,
  type TensorCoreArithmetic,
} from '../../../src/hardware/index.js';
import { seesAKey } from '../key-blocks.js';
import { fa4TensorCore } from '../../fa4/configuration.js';
import { warpRows } from '../../fa4/forward-constants.js';
import { fa4Formats, outConversions, type InputPatterns } from '../../fa4/forward-formats.js';
import {
  forwardSteps,
  polynomialColumns,
  type ForwardSteps,
  type StepBlock,
  type TileSetting,
} from '../steps.js';
import { blockMmas, type ForwardTile } from '../forward-tile.js';

const { fp32 } = formats;

/** A matrix of bit patterns with rows of `columns`, with zeros to the right and below. */
function padded<Patterns extends InputPatterns>(
  source: Patterns,
  columns: number,
  size: { readonly rows: number; readonly columns: number },
): Patterns {
  const target = new (source.constructor as new (length: number) => Patterns)(
    size.rows * size.columns,
  );
  for (let row = 0; row * columns < source.length; row++)
    target.set(source.subarray(row * columns, (row + 1) * columns), row * size.columns);
  return target;
}

function transposed<Patterns extends InputPatterns>(
  source: Patterns,
  rows: number,
  columns: number,
): Patterns {
  return source.map((_, i) => source[(i % rows) * columns + Math.floor(i / rows)]) as Patterns;
}

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

/** What a plain tile does otherwise than the kernel, or by other means. */
export interface PlainTileOptions {
  /** Steps in place of the kernel's. */
  readonly steps?: Partial<ForwardSteps>;
  /** Computes the matrix products; default `tensorCoreProduct`. */
  readonly product?: (arithmetic: TensorCoreArithmetic, product: MatrixProduct) => Uint32Array;
}

/**
 * FlashAttention-4's forward on one tile, instruction by instruction: the definition, for reading and
 * for checking, of what `createForwardTile` computes much faster. The steps between the matrix
 * products are those of steps.ts; the order is that of flash_attn/cute/flash_fwd_sm100.py of
 * Dao-AILab/flash-attention.
 */
export function createPlainForwardTile(
  setting: TileSetting,
  { qkDim, vDim }: { readonly qkDim: number; readonly vDim: number },
  options: PlainTileOptions = {},
): ForwardTile {
  const { configuration, format } = setting;
  const { blockKeys, architecture, outFormat } = configuration;
  const { product = tensorCoreProduct } = options;
  const steps: ForwardSteps = { ...forwardSteps(setting), ...options.steps };
  const arithmetic: TensorCoreArithmetic = fa4TensorCore(architecture, format);
  const { productsPerSum } = arithmetic;
  const inner = productsPerSum * Math.ceil(qkDim / productsPerSum);
  const toOut = conversions[outConversions[outFormat]];
  const Weights = fa4Formats[format].bits === 8 ? Uint8Array : Uint16Array;
  const polynomials = polynomialColumns(configuration).filter(Boolean).length;

  let rows = 0;
  let index = 0;
  let hasSeenKeys = false;
  let queries: InputPatterns = new Uint16Array();
  let max: number[] = [];
  let start: number[] = [];
  let sum: number[] = [];
  let out: Uint32Array = new Uint32Array();
  let rescales = new Int32Array();
  let counters = noCounts();

  /** The weights of one row and the factor α on what was summed before. */
  function softmaxStep(row: number, scores: readonly number[], block: StepBlock) {
    const isFirst = index === 0;
    const now = scores.reduce(steps.larger, isFirst ? -Infinity : max[row]);
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

  /** Multiplies the output of every warp that has something to rescale. */
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

  function normalised(): number[] {
    const factors = sum.map((l, row) => steps.normaliser(l, start[row]));
    return Array.from(out, (bits, i) =>
      multiplyFloat32(decode(fp32, bits), factors[Math.floor(i / vDim)]),
    );
  }

  /** The LSE as bits, since a NaN has them too. */
  function logSumExps(): Float32Array {
    const bits = Uint32Array.from(sum, (l, row) =>
      encode(fp32, steps.logSumExp(steps.logSumExp2(max[row], l))),
    );
    return new Float32Array(bits.buffer);
  }

  return {
    begin: (source, count) => {
      rows = count;
      index = 0;
      hasSeenKeys = false;
      queries = padded(source, qkDim, { rows, columns: inner });
      max = Array.from({ length: rows }, () => -Infinity);
      sum = Array.from({ length: rows }, () => 0);
      start = sum.slice();
      out = new Uint32Array(rows * vDim);
      rescales = new Int32Array(rows);
      counters = noCounts();
    },
    block: (keyBlock, keys, values) => {
      const { visible } = keyBlock;
      const isMasked = visible.some(({ begin, end }) => begin > 0 || end < blockKeys);
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
      const weights = new Weights(rows * blockKeys);
      const alphas = visible.map(({ begin, end }, row) => {
        const scores = Array.from({ length: blockKeys }, (_, j) =>
          j >= begin && j < end ? steps.score(scoreBits[row * blockKeys + j]) : -Infinity,
        );
        const { weights: p, alpha } = softmaxStep(row, scores, block);
        p.forEach((x, j) => (weights[row * blockKeys + j] = steps.weight(x, block)));
        start[row] = steps.startingSum(sum[row], alpha);
        sum[row] = steps.rowSum(start[row], p, block);
        return alpha;
      });
      counters.polynomialLanes += rows * polynomials;
      counters.hardwareLanes += rows * (blockKeys - polynomials);
      counters.mmas += blockMmas(inner, blockKeys, vDim, productsPerSum);
      if (index > 0) rescaleOutput(alphas, block);
      out = product(arithmetic, {
        m: rows,
        n: vDim,
        k: blockKeys,
        aFormat: format,
        bFormat: format,
        a: weights,
        bTransposed: transposed(
          padded(values, vDim, { rows: blockKeys, columns: vDim }),
          blockKeys,
          vDim,
        ),
        c: index === 0 ? new Uint32Array(rows * vDim) : out,
      }).map(steps.accumulated);
      index++;
      hasSeenKeys ||= seesAKey(keyBlock);
    },
    finish: () => ({
      out: Uint16Array.from(normalised(), (x) => toOut.evaluate(encode(fp32, x))),
      lse: logSumExps(),
      rescales,
      counters,
    }),
    finishPartial: () => ({
      out: Float32Array.from(normalised()),
      lse: logSumExps(),
      rescales,
      counters,
    }),
  };
}
