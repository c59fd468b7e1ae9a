import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting, KernelSettings } from '../kernel-model.js';
import { attributeLumped } from '../lumped-attribution.js';
import { createForward, type Forward } from '../online-softmax/forward.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { exp2Units } from '../online-softmax/units.js';
import { exactLaws, type ModelPromises } from '../promises.js';
import { checkKeys, choiceValue, defined, numberValue } from '../setting-values.js';
import { flashInferArithmetic } from './arithmetic.js';
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

/** A problem with what settings make of it. */
interface Prepared {
  readonly shape: ProblemShape;
  readonly configuration: FlashInferConfiguration;
  readonly recipe: Recipe;
  readonly forward: Forward;
}

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(problem: Problem, texts: KernelSettings): Prepared {
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
  return { shape, configuration, recipe, forward: createForward(problem, shape, recipe) };
}

/** The configuration as settings, by key. */
function settingsOf({ architecture, splits, multiprocessors }: FlashInferConfiguration) {
  return { architecture, splits, multiprocessors };
}

const promises: ModelPromises = {
  formats: ['bf16', 'fp16'],
  // It takes as many keys as queries, or more, and 65 rows or more, which problems here do not promise.
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
  prepare: (problem, texts) => {
    const { shape, configuration, recipe, forward } = prepared(problem, texts);
    return {
      shape,
      outFormat: recipe.outFormat,
      pieces: forward.tiles,
      settings: settingsOf(configuration),
      evidence: flashInferEvidence(configuration, recipe),
      run: (piece) => {
        const { first, rows } = forward.rowsOf(piece);
        const { out, lse, rescales, counters } = forward.runTile(piece);
        return { firstRow: first, rows, out, lse, rescales, counters: { ...counters } };
      },
    };
  },
  attribute: (problem, texts) => {
    const { shape, recipe, forward, configuration } = prepared(problem, texts);
    if (recipe.split !== null)
      throw new RequestError(
        `splits is ${configuration.splits}; the error of a merge is not told apart: leave it at 1`,
      );
    return attributeLumped(problem, {
      model: 'flashinfer',
      shape,
      outFormat: recipe.outFormat,
      settings: settingsOf(configuration),
      pieces: forward.tiles,
      rowsOf: forward.rowsOf,
      unrounded: (piece) => {
        const { out, lse } = forward.runUnrounded(piece);
        return { out: Float64Array.from(out), lse: Float64Array.from(lse) };
      },
    });
  },
  arithmetic: (problem, texts) => {
    const { shape, recipe, configuration } = prepared(problem, texts);
    const { architecture, splits } = configuration;
    if (splits > 1)
      throw new RequestError(
        `splits is ${splits}; there are no bounds for a merge yet: leave it at 1`,
      );
    return flashInferArithmetic(problem, shape, recipe, `flashinfer (${architecture})`);
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
