import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting, KernelSettings } from '../kernel-model.js';
import { exactLaws, type ModelPromises } from '../promises.js';
import { checkUnsplit, recipeArithmetic } from '../online-softmax/arithmetic.js';
import { attributedKernel, hardwareTechniques } from '../online-softmax/attributed/index.js';
import { preparedRecipe, unitExponentials } from '../online-softmax/lumped-model.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { checkKeys, defined, givenValues, numberValue } from '../setting-values.js';
import { fa3Backward } from './backward.js';
import { fa3Configuration, fa3Tile, type Fa3Configuration } from './configuration.js';
import { fa3Evidence, fa3Recipe, fa3TechniqueDefinitions } from './recipe.js';

const settings: readonly KernelSetting[] = [
  {
    key: 'splits',
    description:
      'parts of the keys whose results are combined, 1 (default) to 256; auto: as the kernel chooses',
  },
  {
    key: 'multiprocessors',
    description: 'of the GPU, which decide how many splits auto is; default 132',
  },
];

/** A problem with the choices of its settings. */
interface Prepared {
  readonly shape: ProblemShape;
  readonly configuration: Fa3Configuration;
  readonly recipe: Recipe;
}

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(problem: Problem, texts: KernelSettings): Prepared {
  checkKeys('fa3', settings, texts);
  const given = givenValues(texts);
  const shape = problemShape(problem);
  const configuration = fa3Configuration(
    problem,
    shape,
    defined({
      splits: given('splits', (key, text) => (text === 'auto' ? text : numberValue(key, text))),
      multiprocessors: given('multiprocessors', numberValue),
    }),
  );
  return { shape, configuration, recipe: fa3Recipe(problem, shape, configuration) };
}

/** The configuration as settings, by key. */
function settingsOf({ splits, multiprocessors }: Fa3Configuration) {
  return { splits, multiprocessors };
}

const promises: ModelPromises = {
  formats: ['bf16', 'fp16'],
  // The maximum is that of the raw scores.
  scales: ['default', 'odd'],
  // Q, K and V have one head dimension, but for 192 and 128.
  dims: [8, 24, 64, 128, 192],
  emptyRows: true,
  laws: { ...exactLaws, 'causal-is-window': 'bits' },
  lse: true,
  blockKeys: fa3Tile({ qkDim: 64, vDim: 64 }, 'none').keys,
  configurations: [],
};

/** FlashAttention-3's forward on Hopper. */
export const fa3Model: KernelModel = kernelModel({
  name: 'fa3',
  description: "FlashAttention-3's forward on Hopper, as nvcc compiles it, bit for bit",
  settings,
  features: [],
  prepare: (problem, texts) => {
    const { shape, configuration, recipe } = prepared(problem, texts);
    return preparedRecipe(problem, {
      shape,
      recipe,
      settings: settingsOf(configuration),
      evidence: fa3Evidence(recipe),
    });
  },
  attribute: (problem, texts) => {
    const { shape, configuration, recipe } = prepared(problem, texts);
    return attributedKernel(problem, shape, recipe, {
      settings: settingsOf(configuration),
      techniques: hardwareTechniques,
      definitions: fa3TechniqueDefinitions,
    });
  },
  arithmetic: (problem, texts) => {
    const { configuration, recipe } = prepared(problem, texts);
    checkUnsplit(configuration.splits);
    return recipeArithmetic(recipe, 'fa3');
  },
  premises: () => ({}),
  promises: () => promises,
  // The choice of its interface.
  candidates: [{ splits: 'auto' }],
  unlagged: null,
  exponentials: (problem, texts) =>
    unitExponentials(prepared(problem, texts).recipe.exponential.unit),
  program: null,
  backward: fa3Backward,
});
