import { problemShape, type Problem } from '../../src/problem/index.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting, KernelSettings } from '../kernel-model.js';
import { firstLastArithmetic } from '../online-softmax/first-last-arithmetic.js';
import {
  attributedRecipe,
  preparedRecipe,
  type RecipeOfProblem,
} from '../online-softmax/lumped-model.js';
import { exp2Units } from '../online-softmax/units.js';
import { exactLaws, type ModelPromises } from '../promises.js';
import { checkKeys, choiceValue } from '../setting-values.js';
import { cutlassEvidence, cutlassRecipe } from './recipe.js';

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_100 (default) or sm_103' },
];

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(problem: Problem, texts: KernelSettings): RecipeOfProblem {
  checkKeys('cutlass-fmha', settings, texts);
  const architecture = choiceValue('architecture', texts.get('architecture') ?? 'sm_100', [
    'sm_100',
    'sm_103',
  ] as const);
  const shape = problemShape(problem);
  const recipe = cutlassRecipe(problem, shape, architecture);
  return { shape, recipe, settings: { architecture }, evidence: cutlassEvidence(recipe) };
}

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
  exponentials: () => {
    const unit = 'ex2.approx.ftz.f32';
    return [{ name: unit, place: 'The special function unit', share: 1, exp2: exp2Units[unit] }];
  },
  program: null,
  backward: null,
});
