import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSettings } from '../kernel-model.js';
import { exactLaws, type ModelPromises } from '../promises.js';
import { checkUnsplit, recipeArithmetic } from '../online-softmax/arithmetic.js';
import { attributedKernel, hardwareTechniques } from '../online-softmax/attributed/index.js';
import { preparedRecipe, unitExponentials } from '../online-softmax/lumped-model.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { fa2Configuration, fa2Tile, type Fa2Configuration } from './configuration.js';
import { fa2Backward } from './backward.js';
import { fa2Evidence, fa2Recipe, fa2TechniqueDefinitions } from './recipe.js';
import { forwardSettings, overridesOf, settingsOf } from './settings.js';

/** A problem with the choices of its settings. */
interface Prepared {
  readonly shape: ProblemShape;
  readonly configuration: Fa2Configuration;
  readonly recipe: Recipe;
}

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(problem: Problem, texts: KernelSettings): Prepared {
  const shape = problemShape(problem);
  const configuration = fa2Configuration(problem, shape, overridesOf(texts));
  return { shape, configuration, recipe: fa2Recipe(problem, shape, configuration) };
}

/** Settings that change the bits and must do no harm. */
const configurations: readonly Readonly<Record<string, string>>[] = [
  { build: 'flash-attn' },
  { architecture: 'sm_80' },
  { architecture: 'sm_89' },
  { architecture: 'sm_120' },
];

const promises: ModelPromises = {
  formats: ['bf16', 'fp16'],
  // The maximum is that of the raw scores.
  scales: ['default', 'odd'],
  // Q, K and V have one head dimension.
  dims: [8, 24, 64, 128],
  // The LSE of a row without keys is +∞.
  emptyRows: false,
  laws: { ...exactLaws, 'causal-is-window': 'bits' },
  lse: true,
  blockKeys: fa2Tile(64, 'sm_90', false).keys,
  configurations,
};

/** FlashAttention-2's forward, as in PyTorch and the flash-attn package. */
export const fa2Model: KernelModel = kernelModel({
  name: 'fa2',
  description: "FlashAttention-2's forward, as in PyTorch, bit for bit",
  settings: forwardSettings,
  features: ['sequences'],
  prepare: (problem, texts) => {
    const { shape, configuration, recipe } = prepared(problem, texts);
    return preparedRecipe(problem, {
      shape,
      recipe,
      settings: settingsOf(configuration),
      evidence: fa2Evidence(configuration, recipe),
    });
  },
  attribute: (problem, texts) => {
    const { shape, configuration, recipe } = prepared(problem, texts);
    return attributedKernel(problem, shape, recipe, {
      settings: settingsOf(configuration),
      techniques: hardwareTechniques,
      definitions: fa2TechniqueDefinitions,
    });
  },
  arithmetic: (problem, texts) => {
    const { configuration, recipe } = prepared(problem, texts);
    const { architecture, build, splits } = configuration;
    checkUnsplit(splits);
    return recipeArithmetic(recipe, `fa2 (${architecture}, ${build})`);
  },
  premises: () => ({}),
  promises: () => promises,
  // PyTorch's choice. On small problems the outputs of the other builds do not differ.
  candidates: [{ splits: 'auto' }],
  unlagged: null,
  exponentials: (problem, texts) =>
    unitExponentials(prepared(problem, texts).recipe.exponential.unit),
  program: null,
  backward: fa2Backward,
});
