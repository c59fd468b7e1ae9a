import {
  findTensorCoreArithmetic,
  hardwareExp2Error,
  hardwareLog2Error,
  specialFunctionEvidence,
  tensorCoreEvidence,
} from '../src/hardware/index.js';
import type { Problem, ProblemShape } from '../src/problem/index.js';
import { RequestError } from '../src/request-error.js';
import { roundoff32, type KernelArithmetic } from './arithmetic.js';
import { kernelModel } from './kernel-features.js';
import type { KernelModel, KernelSetting } from './kernel-model.js';
import { largestRowNorm } from './row-features.js';
import { arithmeticOfFactors, normaliseError } from './online-softmax/first-last-arithmetic.js';
import {
  attributedRecipe,
  preparedRecipe,
  recipeByArchitecture,
  unitExponentials,
} from './online-softmax/lumped-model.js';
import type { Recipe } from './online-softmax/recipe.js';
import { exactLaws, type ModelPromises } from './promises.js';

/** The GPU whose instructions are modelled. */
export type Fa1Architecture = 'sm_80' | 'sm_90' | 'sm_120';

/** Queries that a thread block works on at a time. */
const tileQueries = 16;

/** Keys of a block: 256, but 128 for at most that many keys or more than 64 dimensions. */
export function fa1BlockKeys({ keys, qkDim }: Pick<ProblemShape, 'keys' | 'qkDim'>): number {
  return qkDim > 64 || keys <= 128 ? 128 : 256;
}

/** @throws RequestError for formats, sizes and masks that the kernel has no path for */
function checkProblem(problem: Problem, { qkDim, vDim, queries, keys }: ProblemShape): void {
  const { q, k, v } = problem;
  for (const [name, { format }] of Object.entries({ q, k, v }))
    if (!((format === 'bf16' || format === 'fp16') && format === q.format))
      throw new RequestError(
        `${name} is ${format}; the fa1 model takes bf16 or fp16, all the same`,
      );
  if (qkDim !== vDim)
    throw new RequestError(
      `q and v have head dimensions ${qkDim} and ${vDim}; the fa1 model takes one for both`,
    );
  if (!(qkDim >= 1 && qkDim <= 128))
    throw new RequestError(`head dimension ${qkDim}; the fa1 model takes 1 to 128`);
  if (problem.softcap !== null)
    throw new RequestError('the fa1 model has no softcap; leave it out');
  if (problem.window !== null)
    throw new RequestError('the fa1 model has no sliding window; leave it out');
  if (!(problem.scale > 0))
    throw new RequestError(
      `scale is ${problem.scale}; the fa1 model divides by it and takes positive ones`,
    );
  if (problem.causal && queries !== keys)
    throw new RequestError(
      `${queries} queries and ${keys} keys; a causal mask of the fa1 model takes equally many`,
    );
}

/**
 * FlashAttention-1's forward: blocks of keys from the first to the last; after every block the output is
 * normalised and a row keeps its LSE in place of a maximum and a sum. Four warps share the keys of a block;
 * their products P·V start from 0 and are added to the output in fp32. Compiled with use_fast_math, which
 * contracts s·c − m·c and approximates 1 / l and e^x. Sources: fmha_fprop_kernel_1xN.h and fmha/softmax.h in
 * csrc/flash_attn/src of Dao-AILab/flash-attention, version 1; the contraction of the LSE is a guess.
 *
 * @throws RequestError for a problem that the kernel does not take: formats other than bf16 and fp16,
 *   unequal head dimensions or such beyond 128, a softcap, a window, a scale that is not positive, a causal
 *   mask with unequal lengths
 */
export function fa1Recipe(
  problem: Problem,
  shape: ProblemShape,
  architecture: Fa1Architecture,
): Recipe {
  checkProblem(problem, shape);
  const { fround } = Math;
  const format = problem.q.format as 'bf16' | 'fp16';
  return {
    kernel: 'fa1',
    format,
    outFormat: format,
    tensorCore: findTensorCoreArithmetic({ instruction: 'mma.sync', architecture, a: format }),
    tiling: {
      queries: tileQueries,
      keys: fa1BlockKeys(shape),
      tilesPerCta: 1,
      order: 'first-last',
      visits: 'diagonal',
    },
    softmaxScale: problem.scale,
    scoreChange: null,
    exponent: { scale: fround(fround(problem.scale) * Math.LOG2E), offset: 0, isFused: true },
    exponential: { unit: 'ex2.approx.ftz.f32', polynomial: null },
    rescale: { threshold: 0, of: 'rows', exponent: 'difference', checksInfinity: true },
    rowSum: 'quads-of-warps',
    values: { sum: 'warps' },
    finish: {
      normalise: 'after-every-block',
      reciprocal: 'rcp.approx.ftz.f32',
      outFactor: 1,
      logSumExp: 'natural',
      emptyLogSumExp: -Infinity,
    },
    split: null,
  };
}

/** Roundings of m·scale, of the LSE twice, of its quotient, and of the exponent of α twice. */
const logSumExpRoundings = 6;

/**
 * The arithmetic of FlashAttention-1's forward. The sums before a block enter with the factor e^(LSE −
 * m·scale), whose error grows with the LSE: no LSE exceeds the largest score in magnitude by more than
 * the logarithm of the number of keys, and no score the product of norms.
 */
function fa1Arithmetic(
  problem: Problem,
  { keys, qkDim }: { readonly keys: number; readonly qkDim: number },
  recipe: Recipe,
  description: string,
): KernelArithmetic {
  const largestScore =
    problem.scale * largestRowNorm(problem.q, qkDim) * largestRowNorm(problem.k, qkDim);
  const logSumExp = 2 * (largestScore + Math.log(Math.max(keys, 1)));
  return arithmeticOfFactors(
    problem,
    recipe,
    description,
    (scaleError) =>
      hardwareExp2Error +
      hardwareLog2Error +
      normaliseError +
      (logSumExpRoundings * roundoff32 + scaleError) * logSumExp,
  );
}

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_80 (default), sm_90 or sm_120' },
];

/** Evidence for the bits, a line each. */
function fa1Evidence(architecture: Fa1Architecture, recipe: Recipe): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(recipe.tensorCore)}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence[architecture === 'sm_90' ? 'sm_90' : 'sm_100'].label}`,
    'fp32 add, mul, fma and div: IEEE 754',
    'order of operations: [model] FlashAttention-1 sources; no GPU was compared, contraction is a guess',
  ];
}

/** The recipe of a problem; throws a RequestError for an unknown key, a bad value or a problem that the kernel does not take. */
const prepared = recipeByArchitecture(
  { name: 'fa1', settings },
  ['sm_80', 'sm_90', 'sm_120'],
  (problem, shape, architecture) => {
    const recipe = fa1Recipe(problem, shape, architecture);
    return { recipe, evidence: fa1Evidence(architecture, recipe) };
  },
);

const promises: ModelPromises = {
  formats: ['bf16', 'fp16'],
  // A causal mask takes as many queries as keys, which problems here do not guarantee.
  causal: false,
  window: false,
  emptyRows: false,
  scales: ['default', 'odd'],
  dims: [8, 24, 64, 128],
  laws: exactLaws,
  lse: true,
  configurations: [{ architecture: 'sm_90' }],
};

/** FlashAttention-1's forward, which normalises its output after every block of keys. */
export const fa1Model: KernelModel = kernelModel({
  name: 'fa1',
  description: "FlashAttention-1's forward, its output normalised after every block",
  settings,
  features: [],
  prepare: (problem, texts) => preparedRecipe(problem, prepared(problem, texts)),
  attribute: (problem, texts) => attributedRecipe(problem, prepared(problem, texts)),
  arithmetic: (problem, texts) => {
    const { shape, recipe, settings } = prepared(problem, texts);
    return fa1Arithmetic(problem, shape, recipe, `fa1 (${settings['architecture']})`);
  },
  premises: () => ({}),
  promises: () => promises,
  // Few kernels of its kind are left: an output of unknown origin is not compared with it.
  candidates: [],
  unlagged: null,
  exponentials: () => unitExponentials('ex2.approx.ftz.f32'),
  program: null,
  backward: null,
});
