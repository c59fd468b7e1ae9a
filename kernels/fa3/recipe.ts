import {
  findTensorCoreArithmetic,
  specialFunctionEvidence,
  tensorCoreEvidence,
} from '../../src/hardware/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import {
  hardwareDefinitions,
  type HardwareDefinitions,
} from '../online-softmax/attributed/attributed-kernel.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { type Fa3Configuration, fa3Tile } from './configuration.js';
import { fa3Mask } from './mask.js';
import { fa3SplitLaw } from './split-keys.js';

/**
 * FlashAttention-3's forward on Hopper: blocks from the last to the first, every weight by exp2f, every row rescaled in every block, a quad
 * of threads a row whose sums meet at the end, products by wgmma. It is compiled with use_fast_math. Warp specialisation, the overlap of
 * products and softmax, pairs of CTAs and packed groups do not change the order in which a row's numbers are added. Sources:
 * hopper/softmax.h and hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp of Dao-AILab/flash-attention (commit 0251105a, August 2026), and their
 * compilation by nvcc 13.0.
 */
export function fa3Recipe(
  problem: Problem,
  shape: ProblemShape,
  { splits }: Fa3Configuration,
): Recipe {
  const { fround } = Math;
  const format = problem.q.format as 'bf16' | 'fp16';
  const { kind } = fa3Mask(problem, shape);
  const tile = fa3Tile(shape, kind);
  const { vDim, groupSize } = shape;
  return {
    kernel: 'fa3',
    format,
    outFormat: format,
    tensorCore: findTensorCoreArithmetic({
      instruction: 'wgmma',
      architecture: 'sm_90',
      a: format,
    }),
    tiling: {
      ...tile,
      // With splits the query heads of a group share tiles, which changes the blocks that are divided.
      queries: splits > 1 ? Math.ceil(tile.queries / groupSize) : tile.queries,
      tilesPerCta: 1,
      order: 'last-first',
      visits: 'diagonal',
    },
    softmaxScale: problem.scale,
    scoreChange: null,
    exponent: { scale: fround(fround(problem.scale) * Math.LOG2E), offset: 0, isFused: true },
    exponential: { unit: 'ex2.approx.ftz.f32', polynomial: null },
    rescale: {
      threshold: 0,
      of: 'rows',
      exponent: 'difference',
      checksInfinity: kind !== 'none',
    },
    rowSum: 'quad',
    values: { sum: 'chain' },
    finish: {
      normalise: 'at-the-end',
      reciprocal: 'rcp.approx.ftz.f32',
      outFactor: 1,
      logSumExp: 'natural-of-base-2',
      emptyLogSumExp: -Infinity,
    },
    split: splits > 1 ? fa3SplitLaw(splits, vDim) : null,
  };
}

/** Evidence for the bits of FlashAttention-3's forward, a line each. */
export function fa3Evidence({ tensorCore }: Recipe): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2, lg2, rcp: ${specialFunctionEvidence.sm_90.label}`,
    'fp32 add, mul and fma: IEEE 754',
    'order of operations: compiled kernel (commit 0251105a, nvcc 13.0); every captured output and LSE equals silicon',
  ];
}

/** As in `hardwareDefinitions`, c is softmax scale · log2 e, m the running maximum, l the row sum. */
export const fa3TechniqueDefinitions: HardwareDefinitions = {
  ...hardwareDefinitions,
  'scale-subtract': {
    emulated: 'x = s·c − m·c in one fp32 multiply-add, at the fp32 score nearest s',
    exact: 'x = (s − m)·c, with c in fp64',
  },
  normalise: {
    emulated:
      "the row's finish: the error of 1 / l at the fp32 l nearest l and of the fp32 product with O; " +
      'LSE = m·(c·ln 2) + lg2.approx(l)·ln 2 in fp32, its error there',
    exact: 'O / l and LSE = (m·c + log2 l)·ln 2 in fp64, with c in fp64',
  },
};
