import { problemShape, type Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
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
import { checkKeys, choiceValue, defined, numberValue } from '../setting-values.js';
import { flashInferConfiguration, type FlashInferConfiguration } from './configuration.js';
import { flashInferEvidence, flashInferRecipe } from './recipe.js';

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_80 or sm_90 (default)' },
  {
    key: 'splits',
    description:
      'parts of the keys whose results are merged, 1 (default) or more; auto: as the kernel chooses for one sequence',
  },
  {
    key: 'multiprocessors',
    description: 'of the GPU, which decide how many splits auto is; default 108 or 132',
  },
];

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(
  problem: Problem,
  texts: KernelSettings,
): RecipeOfProblem & { readonly configuration: FlashInferConfiguration } {
  checkKeys('flashinfer', settings, texts);
  const given = <T>(key: string, parse: (key: string, text: string) => T): T | undefined => {
    const text = texts.get(key);
    return text === undefined ? undefined : parse(key, text);
  };
  const shape = problemShape(problem);
  const configuration = flashInferConfiguration(
    problem,
    shape,
    defined({
      architecture: given('architecture', (key, text) =>
        choiceValue(key, text, ['sm_80', 'sm_90'] as const),
      ),
      splits: given('splits', (key, text) => (text === 'auto' ? text : numberValue(key, text))),
      multiprocessors: given('multiprocessors', numberValue),
    }),
  );
  const recipe = flashInferRecipe(problem, shape, configuration);
  const evidence = flashInferEvidence(configuration, recipe);
  return { shape, configuration, recipe, settings: { ...configuration }, evidence };
}

const promises: ModelPromises = {
  formats: ['bf16', 'fp16'],
  // It takes as many keys as queries, or more, and 65 rows or more, which problems here do not
  // guarantee.
  causal: false,
  window: false,
  emptyRows: false,
  scales: ['default', 'odd'],
  dims: [64, 128],
  laws: exactLaws,
  lse: true,
  blockKeys: 64,
  configurations: [{ architecture: 'sm_80' }],
};

/** FlashInfer's prefill, whose row sums are those of the rounded weights. */
export const flashInferModel: KernelModel = kernelModel({
  name: 'flashinfer',
  description: "FlashInfer's prefill by its fa2 backend, bit for bit",
  settings,
  features: [],
  prepare: (problem, texts) => preparedRecipe(problem, prepared(problem, texts)),
  attribute: (problem, texts) => {
    const kernel = prepared(problem, texts);
    if (kernel.recipe.split !== null)
      throw new RequestError(
        `splits is ${kernel.configuration.splits}; the error of a merge is not told apart: leave it at 1`,
      );
    return attributedRecipe(problem, kernel);
  },
  arithmetic: (problem, texts) => {
    const { shape, recipe, configuration } = prepared(problem, texts);
    const { architecture, splits } = configuration;
    if (splits > 1)
      throw new RequestError(
        `splits is ${splits}; there are no bounds for a merge yet: leave it at 1`,
      );
    return firstLastArithmetic(problem, shape, recipe, `flashinfer (${architecture})`);
  },
  premises: () => ({ rowSum: 'after-rounding' }),
  promises: () => promises,
  candidates: [{ splits: 'auto' }],
  unlagged: null,
  exponentials: () => {
    const unit = 'ex2.approx.ftz.f32';
    return [{ name: unit, place: 'The special function unit', share: 1, exp2: exp2Units[unit] }];
  },
  program: null,
  backward: null,
});
