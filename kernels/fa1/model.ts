import { specialFunctionEvidence, tensorCoreEvidence } from '../../src/hardware/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting, KernelSettings } from '../kernel-model.js';
import { exactLaws, type ModelPromises } from '../promises.js';
import {
  attributedRecipe,
  preparedRecipe,
  type RecipeOfProblem,
} from '../online-softmax/lumped-model.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { exp2Units } from '../online-softmax/units.js';
import { checkKeys, choiceValue } from '../setting-values.js';
import { fa1Arithmetic } from './arithmetic.js';
import { fa1Recipe, type Fa1Architecture } from './recipe.js';

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_80 (default) or sm_90' },
];

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(problem: Problem, texts: KernelSettings): RecipeOfProblem {
  checkKeys('fa1', settings, texts);
  const architecture = choiceValue('architecture', texts.get('architecture') ?? 'sm_80', [
    'sm_80',
    'sm_90',
  ] as const);
  const shape = problemShape(problem);
  const recipe = fa1Recipe(problem, shape, architecture);
  return { shape, recipe, settings: { architecture }, evidence: fa1Evidence(architecture, recipe) };
}

/** Evidence for the bits, a line each. */
function fa1Evidence(architecture: Fa1Architecture, recipe: Recipe): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(recipe.tensorCore)}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence[architecture === 'sm_90' ? 'sm_90' : 'sm_100'].label}`,
    'fp32 add, mul, fma and div: IEEE 754',
    'order of operations: [model] FlashAttention-1 sources; no GPU was compared, contraction is a guess',
  ];
}

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
  exponentials: () => {
    const unit = 'ex2.approx.ftz.f32';
    return [{ name: unit, place: 'The special function unit', share: 1, exp2: exp2Units[unit] }];
  },
  program: null,
  backward: null,
});
