import type { Recipe } from '../online-softmax/recipe.js';
import type { Tiling } from '../online-softmax/key-blocks.js';
import type { ScoreChange } from '../online-softmax/score-change.js';
import type { SplitLaw } from '../online-softmax/split-tile.js';
import type { Problem } from '../../src/problem/index.js';
import {
  exponentScale,
  type Fa4Configuration,
  type Fa4Format,
  fa4TensorCore,
} from './configuration.js';
import { tileQueries } from './thread-blocks.js';
import { hasMaskMod, hasScoreMod } from './features.js';
import { polynomialColumns } from './exp2-tuning.js';
import { splitBlocks } from '../online-softmax/split-tile.js';
import { combineSplits, combineSteps, type CombineSteps } from './split-combine.js';

/** Parameters of a tile's computation. */
export interface TileSetting {
  readonly configuration: Fa4Configuration;
  readonly format: Fa4Format;
  /** The scale of the exponents: softmax scale times log2 e and descales, an fp32 number. */
  readonly scale: number;
  /** Blocks of keys that a CTA visits; default `diagonal`. */
  readonly visits?: Tiling['visits'];
  /** Null, the default, where the scale is in the exponents: scores are not modified. */
  readonly scoreChange?: ScoreChange | null;
}

/**
 * Parameters of a problem's tiles. With a score_mod the scale is applied before it, and the exponents have log2 e
 * alone; with a mask_mod all blocks are visited, and with block sparsity those that are listed. Sources:
 * `compute_softmax_scale_log2` in utils.py, `_resolve_causal_local_window` in interface.py and
 * `softmax_block_sparse_sm100_list` in block_sparse_utils.py. The compiler fuses the scale with a bias that is added
 * (`fma.rn.f32` in the PTX), and not with ALiBi's product, which is subtracted.
 */
export function tileSetting(problem: Problem, configuration: Fa4Configuration): TileSetting {
  const { scale: softmaxScale, softcap, blockMask } = problem;
  const { fround } = Math;
  const { q, k } = configuration.descale;
  const masks = hasMaskMod(problem) ? 'all' : 'diagonal';
  return {
    configuration,
    // The configuration's creation has checked the format.
    format: problem.q.format as Fa4Format,
    visits: blockMask === undefined ? masks : 'listed',
    ...(hasScoreMod(problem)
      ? {
          scale: fround(Math.LOG2E),
          scoreChange: {
            scale: fround(fround(softmaxScale) * fround(fround(q) * fround(k))),
            softcap,
            fusesAddend: problem.bias !== undefined,
          },
        }
      : { scale: exponentScale(softmaxScale, configuration), scoreChange: null }),
  };
}

/** Tiles that one CTA works on at a time. */
const tilesPerCta = 2;

/** The keys in `splits` parts; null for one. */
function splitLaw(splits: number, steps: Partial<CombineSteps>): SplitLaw | null {
  if (splits === 1) return null;
  const combine = { ...combineSteps, ...steps };
  return {
    cut: (blocks) => splitBlocks(blocks, splits),
    combine: (parts, vDim) => combineSplits(parts, vDim, combine),
  };
}

/**
 * FlashAttention-4's forward: blocks from the last to the first, weights by the special function unit
 * and in some columns by software, a rescale that waits until the maximum has grown by a threshold and
 * is decided by warps, row sums by one thread, the reciprocal of the row sum and the LSE by the special
 * function unit. Source: flash_attn/cute/softmax.py, flash_fwd_sm100.py and block_info.py of
 * Dao-AILab/flash-attention.
 *
 * @param softmaxScale the problem's scale
 * @param combine steps of the combine of split keys that differ
 */
export function fa4Recipe(
  { configuration, format, scale, visits = 'diagonal', scoreChange = null }: TileSetting,
  softmaxScale: number,
  combine: Partial<CombineSteps> = {},
): Recipe {
  const { architecture, exp2, rescaleThreshold, maxOffset, lseFused, blockKeys, outFormat } =
    configuration;
  return {
    kernel: 'fa4',
    format,
    outFormat,
    tensorCore: fa4TensorCore(architecture, format),
    tiling: {
      queries: tileQueries,
      keys: blockKeys,
      tilesPerCta,
      order: 'last-first',
      visits,
    },
    softmaxScale,
    scoreChange,
    exponent: { scale, offset: Math.fround(maxOffset), isFused: true },
    exponential: {
      unit: 'ex2.approx.ftz.f32',
      polynomial: { degree: exp2.degree, columns: polynomialColumns(configuration) },
    },
    rescale: {
      threshold: rescaleThreshold,
      of: 'warps',
      exponent: 'difference',
      checksInfinity: true,
    },
    rowSum: 'packed',
    values: { sum: 'chain' },
    finish: {
      normalise: 'at-the-end',
      reciprocal: 'rcp.approx.ftz.f32',
      outFactor: Math.fround(configuration.descale.v),
      logSumExp: lseFused ? 'base-2-fused' : 'base-2',
      emptyLogSumExp: -Infinity,
    },
    split: splitLaw(configuration.splits, combine),
  };
}
