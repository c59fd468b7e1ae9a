import { findTensorCoreArithmetic } from '../../src/hardware/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { fa2Tile, type Fa2Configuration } from './configuration.js';
import { cudaMath } from './cuda-math.js';
import { fa2SplitLaw, splitBlockKeys, splitTileQueries } from './split-keys.js';

/**
 * FlashAttention-2's forward: blocks from the last to the first, every weight by exp2f, every row
 * rescaled in every block, a quad of threads a row whose sums meet at the end. PyTorch compiles it
 * without use_fast_math and keeps the multiplication of the exponent apart from its addition (UNFUSE_FMA);
 * the flash-attn package does neither. Sources: csrc/flash_attn/src/softmax.h and flash_fwd_kernel.h of
 * Dao-AILab/flash-attention, aten/src/ATen/native/transformers/cuda/flash_attn of PyTorch.
 */
export function fa2Recipe(
  problem: Problem,
  { keys, qkDim }: ProblemShape,
  { architecture, build, splits }: Fa2Configuration,
): Recipe {
  const { fround } = Math;
  const isSplit = splits > 1;
  const isFast = build === 'flash-attn';
  const format = problem.q.format as 'bf16' | 'fp16';
  const tile = isSplit
    ? { queries: splitTileQueries, keys: splitBlockKeys(qkDim) }
    : fa2Tile(qkDim, architecture, problem.causal);
  const math = cudaMath[isFast ? 'fast' : 'libdevice'];
  return {
    kernel: 'fa2',
    format,
    outFormat: format,
    tensorCore: findTensorCoreArithmetic({ instruction: 'mma.sync', architecture, a: format }),
    tiling: { ...tile, tilesPerCta: 1, order: 'last-first' },
    softmaxScale: problem.scale,
    exponent: {
      scale: fround(fround(problem.scale) * Math.LOG2E),
      offset: 0,
      isFused: isFast,
    },
    exponential: { unit: isFast ? 'ex2.approx.ftz.f32' : 'ex2.approx.f32', polynomial: null },
    rescale: {
      threshold: 0,
      of: 'rows',
      checksInfinity: problem.causal || problem.window !== null || isSplit,
    },
    rowSum: 'quad',
    values: { sum: 'chain' },
    finish: {
      normalise: 'at-the-end',
      reciprocal: isFast ? 'rcp.approx.ftz.f32' : 'div.rn.f32',
      outFactor: 1,
      logSumExp: 'natural',
      emptyLogSumExp: isSplit ? -Infinity : Infinity,
    },
    split: isSplit ? fa2SplitLaw(splits, keys, qkDim, math) : null,
  };
}
