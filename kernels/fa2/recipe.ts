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
import { type Fa2Build, type Fa2Configuration, fa2Tile } from './configuration.js';
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
    tiling: { ...tile, tilesPerCta: 1, order: 'last-first', visits: 'diagonal' },
    softmaxScale: problem.scale,
    scoreChange: null,
    exponent: {
      scale: fround(fround(problem.scale) * Math.LOG2E),
      offset: 0,
      isFused: isFast,
    },
    exponential: { unit: isFast ? 'ex2.approx.ftz.f32' : 'ex2.approx.f32', polynomial: null },
    rescale: {
      threshold: 0,
      of: 'rows',
      exponent: 'difference',
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

/** Evidence for the order of operations on sm_90, by the build; examples/flash-attention-2 runs the compiled kernels. */
const compared: Readonly<Record<Fa2Build, string>> = {
  pytorch:
    'order of operations: PyTorch sources; every captured output and LSE equals silicon: head dimensions 32 to 256, packed and grouped ones, windows',
  'flash-attn':
    'order of operations: the bits of the compiled kernel, contracted as ptxas 13.0 does; no GPU was compared',
};
const sources = 'order of operations: [model] FlashAttention-2 sources; no GPU was compared';

/** Evidence for the bits of FlashAttention-2's forward in a configuration, a line each. */
export function fa2Evidence(
  { architecture, build }: Fa2Configuration,
  { tensorCore }: Recipe,
): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2, lg2: ${specialFunctionEvidence[architecture === 'sm_90' ? 'sm_90' : 'sm_100'].label}`,
    'fp32 add, mul, fma and div: IEEE 754',
    architecture === 'sm_90' ? compared[build] : sources,
  ];
}

/** As in `hardwareDefinitions`, c is softmax scale · log2 e, m the running maximum, l the row sum. */
export const fa2TechniqueDefinitions: HardwareDefinitions = {
  ...hardwareDefinitions,
  'scale-subtract': {
    emulated:
      "x = s·c − m·c in fp32, rounded as the kernel's build does, at the fp32 score nearest s",
    exact: 'x = (s − m)·c, with c in fp64',
  },
  normalise: {
    emulated:
      "the row's finish: the error of 1 / l at the fp32 l nearest l and of the fp32 product with O; " +
      'LSE = m·scale + lg2.approx(l)·ln 2 in fp32, its error there',
    exact: 'O / l and LSE = (m·c + log2 l)·ln 2 in fp64, with c in fp64',
  },
};
