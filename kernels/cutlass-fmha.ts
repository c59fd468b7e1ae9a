import {
  type BlackwellArchitecture,
  findTensorCoreArithmetic,
  specialFunctionEvidence,
  tensorCoreEvidence,
} from '../src/hardware/index.js';
import type { Problem, ProblemShape } from '../src/problem/index.js';
import { RequestError } from '../src/request-error.js';
import { kernelModel } from './kernel-features.js';
import type { KernelModel, KernelSetting } from './kernel-model.js';
import { firstLastArithmetic } from './online-softmax/first-last-arithmetic.js';
import {
  attributedRecipe,
  preparedRecipe,
  recipeByArchitecture,
  unitExponentials,
} from './online-softmax/lumped-model.js';
import type { Recipe } from './online-softmax/recipe.js';
import { exactLaws, type ModelPromises } from './promises.js';

/** The GPU whose instructions are modelled. */
type CutlassArchitecture = BlackwellArchitecture;

/** @throws RequestError for formats, sizes and masks that the model does not take */
function checkProblem(problem: Problem, { qkDim, vDim, queries, keys }: ProblemShape): void {
  const { q, k, v } = problem;
  for (const [name, { format }] of Object.entries({ q, k, v }))
    if (!((format === 'bf16' || format === 'fp16') && format === q.format))
      throw new RequestError(
        `${name} is ${format}; the cutlass-fmha model takes bf16 or fp16, all the same`,
      );
  if (qkDim !== vDim || !(qkDim === 64 || qkDim === 128))
    throw new RequestError(
      `head dimensions ${qkDim} and ${vDim}; the cutlass-fmha model takes 64 or 128 for both`,
    );
  if (problem.causal && queries > keys)
    throw new RequestError(
      `${queries} queries and ${keys} keys; the cutlass-fmha model leaves every query of a causal mask a key`,
    );
  if (problem.softcap !== null)
    throw new RequestError('the cutlass-fmha model has no softcap; leave it out');
  if (problem.window !== null)
    throw new RequestError('the cutlass-fmha model has no sliding window; leave it out');
  if (!(problem.scale > 0))
    throw new RequestError(
      `scale is ${problem.scale}; CUTLASS takes 0 for 1/√d, and the cutlass-fmha model positive ones`,
    );
}

/**
 * The forward of CUTLASS's FMHA for Blackwell: two tiles of 128 queries a CTA, blocks of 128 keys from the first to the last, every weight by the
 * special function unit, every row rescaled in every block. Half of the earlier sum begins each half of the first of four packed accumulators.
 * Sources: examples/77_blackwell_fmha/collective/sm100_fmha_fwd_mainloop_tma_warpspecialized.hpp of CUTLASS 4.7.0; the contraction of the LSE is
 * that of nvcc 13.0.
 *
 * @throws RequestError for a problem that the model does not take
 */
function cutlassRecipe(
  problem: Problem,
  shape: ProblemShape,
  architecture: CutlassArchitecture,
): Recipe {
  checkProblem(problem, shape);
  const { fround } = Math;
  const format = problem.q.format as 'bf16' | 'fp16';
  return {
    kernel: 'cutlass-fmha',
    format,
    outFormat: format,
    tensorCore: findTensorCoreArithmetic({ instruction: 'tcgen05.mma', architecture, a: format }),
    tiling: { queries: 128, keys: 128, tilesPerCta: 2, order: 'first-last', visits: 'diagonal' },
    softmaxScale: problem.scale,
    scoreChange: null,
    exponent: {
      scale: fround(fround(problem.scale) * fround(Math.LOG2E)),
      offset: 0,
      isFused: true,
    },
    exponential: { unit: 'ex2.approx.ftz.f32', polynomial: null },
    rescale: { threshold: 0, of: 'rows', exponent: 'difference', checksInfinity: true },
    rowSum: 'packed-halves',
    values: { sum: 'chain' },
    finish: {
      normalise: 'at-the-end',
      reciprocal: 'rcp.approx.ftz.f32',
      outFactor: 1,
      logSumExp: 'natural-rounded-maximum',
      emptyLogSumExp: -Infinity,
    },
    split: null,
  };
}

/** Evidence for the bits, a line each. */
function cutlassEvidence({ tensorCore }: Recipe): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence.sm_100.label}`,
    'fp32 add, mul and fma: IEEE 754',
    'order of operations: compiled kernel, CUTLASS 4.7.0 by nvcc 13.0; no GPU was compared',
  ];
}

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_100 (default), sm_103 or sm_110' },
];

/** The recipe of a problem; throws a RequestError for an unknown key, a bad value or a problem that the kernel does not take. */
const prepared = recipeByArchitecture(
  { name: 'cutlass-fmha', settings },
  ['sm_100', 'sm_103', 'sm_110'],
  (problem, shape, architecture) => {
    const recipe = cutlassRecipe(problem, shape, architecture);
    return { recipe, evidence: cutlassEvidence(recipe) };
  },
);

const promises: ModelPromises = {
  formats: ['bf16', 'fp16'],
  // A causal mask takes as many keys as queries or more, which problems here do not guarantee.
  causal: false,
  window: false,
  emptyRows: false,
  scales: ['default', 'odd'],
  dims: [64, 128],
  laws: exactLaws,
  lse: true,
  blockKeys: 128,
  configurations: [{ architecture: 'sm_103' }],
};

/** The forward of CUTLASS's FMHA for Blackwell. */
export const cutlassFmhaModel: KernelModel = kernelModel({
  name: 'cutlass-fmha',
  description: "CUTLASS's FMHA for Blackwell, forward, bit for bit",
  settings,
  features: [],
  prepare: (problem, texts) => preparedRecipe(problem, prepared(problem, texts)),
  attribute: (problem, texts) => attributedRecipe(problem, prepared(problem, texts)),
  arithmetic: (problem, texts) => {
    const { shape, recipe, settings: chosen } = prepared(problem, texts);
    return firstLastArithmetic(problem, shape, recipe, `cutlass-fmha (${chosen.architecture})`);
  },
  premises: () => ({}),
  promises: () => promises,
  candidates: [{}],
  unlagged: null,
  exponentials: () => unitExponentials('ex2.approx.ftz.f32'),
  program: null,
  backward: null,
});
