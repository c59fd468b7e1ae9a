import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { decode, encode, formats } from '../../src/formats/index.js';
import {
  conversions,
  findTensorCoreArithmetic,
  specialFunctionEvidence,
  tensorCoreEvidence,
} from '../../src/hardware/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting, KernelSettings } from '../kernel-model.js';
import { firstLastArithmetic } from '../online-softmax/first-last-arithmetic.js';
import {
  attributedRecipe,
  preparedRecipe,
  unitExponentials,
  type RecipeOfProblem,
} from '../online-softmax/lumped-model.js';
import type { Recipe } from '../online-softmax/recipe.js';
import type { SplitLaw } from '../online-softmax/split-tile.js';
import {
  exp2Hardware,
  log2Hardware,
  naturalLogOf2,
  reciprocals,
  roundingConversions,
  type InputFormat,
} from '../online-softmax/units.js';
import { exactLaws, type ModelPromises } from '../promises.js';
import { checkKeys, choiceValue, defined, givenValues, numberValue } from '../setting-values.js';
import {
  blockKeys,
  flashInferArchitectures,
  flashInferConfiguration,
  tileRows,
  type FlashInferConfiguration,
} from './configuration.js';

const { fp32 } = formats;
const { max } = Math;

/**
 * The merge of parts of `partKeys` keys: their outputs rounded to the inputs' format, one after the other, each with the weight 2^(LSE − m),
 * where LSEs are in base 2. Source: MergeStatesKernel of include/flashinfer/attention/cascade.cuh and state_t of state.cuh; the contractions
 * are those of nvcc 13.0. When there are at least as many parts as queries, FlashInfer has another kernel.
 */
function flashInferMerge(splits: number, partKeys: number, format: InputFormat): SplitLaw {
  const round = conversions[roundingConversions[format]];
  const stored = (x: number): number => decode(formats[format], round.evaluate(encode(fp32, x)));
  const weightOf = (m: number, now: number): number => {
    const below = subtractFloat32(m, now);
    return exp2Hardware(Number.isNaN(below) ? -Infinity : below);
  };
  return {
    cut: (blocks) =>
      Array.from({ length: splits }, (_, part) =>
        blocks.filter(({ block }) => Math.floor(block.first / partKeys) === part),
      ),
    combine: (parts, vDim) => {
      let [m, d] = [-Infinity, 1];
      const sums = new Float32Array(vDim);
      for (const { out, lse } of parts) {
        const now = max(m, lse);
        const [old, added] = [weightOf(m, now), weightOf(lse, now)];
        d = fusedMultiplyAddFloat32(d, old, added);
        for (let c = 0; c < vDim; c++) {
          const own = multiplyFloat32(added, out === null ? 0 : stored(out[c]));
          sums[c] = fusedMultiplyAddFloat32(old, sums[c], own);
        }
        m = now;
      }
      const factor = d > 0 ? reciprocals['rcp.approx.ftz.f32'](d) : 0;
      const out = sums.map((sum) => multiplyFloat32(sum, factor));
      return { out, lse: multiplyFloat32(addFloat32(m, log2Hardware(d)), naturalLogOf2) };
    },
  };
}

/**
 * FlashInfer's prefill (backend `fa2`): blocks from the first to the last, queries and heads of a group in the rows of one tile, every row
 * rescaled in every block by 2^(m·c − m′·c) as the assembler contracts it, the row sum as one more column of P·V. Sources:
 * include/flashinfer/attention/prefill.cuh and variants.cuh of FlashInfer 0.7.2; the contractions are those of ptxas 13.0.
 */
function flashInferRecipe(
  problem: Problem,
  { keys, groupSize }: ProblemShape,
  { architecture, splits }: FlashInferConfiguration,
): Recipe {
  const { fround } = Math;
  const format = problem.q.format as 'bf16' | 'fp16';
  const partKeys = Math.ceil(keys / splits);
  const isSplit = splits > 1;
  return {
    kernel: 'flashinfer',
    format,
    outFormat: format,
    tensorCore: findTensorCoreArithmetic({ instruction: 'mma.sync', architecture, a: format }),
    tiling: {
      queries: tileRows / groupSize,
      keys: blockKeys,
      ...(isSplit ? { partKeys } : {}),
      tilesPerCta: 1,
      order: 'first-last',
      visits: 'diagonal',
    },
    softmaxScale: problem.scale,
    scoreChange: null,
    exponent: {
      scale: fround(fround(problem.scale) * fround(Math.LOG2E)),
      offset: 0,
      isFused: true,
    },
    exponential: { unit: 'ex2.approx.ftz.f32', polynomial: null },
    rescale: { threshold: 0, of: 'rows', exponent: 'as-weights', checksInfinity: true },
    rowSum: 'tensor-core',
    values: { sum: 'chain' },
    finish: {
      normalise: 'at-the-end',
      reciprocal: 'rcp.approx.ftz.f32',
      outFactor: 1,
      logSumExp: isSplit ? 'log2' : 'base-2',
      emptyLogSumExp: -Infinity,
    },
    split: isSplit ? flashInferMerge(splits, partKeys, format) : null,
  };
}

/** Evidence for the bits in a configuration, a line each. */
function flashInferEvidence(
  { architecture }: FlashInferConfiguration,
  { tensorCore }: Recipe,
): string[] {
  return [
    `matrix products: ${tensorCoreEvidence(tensorCore)}`,
    `ex2, rcp, lg2: ${specialFunctionEvidence[architecture === 'sm_90' ? 'sm_90' : 'sm_100'].label}`,
    'fp32 add, mul and fma: IEEE 754',
    `order of operations: compiled kernel, FlashInfer 0.7.2 by nvcc 13.0${architecture === 'sm_90' ? '; outputs and LSEs of the bundled problems and of grouped heads equal those of an H200' : '; no GPU was compared'}`,
  ];
}

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_80, sm_90 (default) or sm_120' },
  {
    key: 'splits',
    description:
      'parts of the keys whose results are merged, 1 (default) or more; auto: as the kernel chooses for one sequence',
  },
  {
    key: 'multiprocessors',
    description: 'of the GPU, which decide how many splits auto is; default 108, 132 or 170',
  },
];

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(
  problem: Problem,
  texts: KernelSettings,
): RecipeOfProblem & { readonly configuration: FlashInferConfiguration } {
  checkKeys('flashinfer', settings, texts);
  const given = givenValues(texts);
  const shape = problemShape(problem);
  const configuration = flashInferConfiguration(
    problem,
    shape,
    defined({
      architecture: given('architecture', (key, text) =>
        choiceValue(key, text, flashInferArchitectures),
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
  exponentials: () => unitExponentials('ex2.approx.ftz.f32'),
  program: null,
  backward: null,
});
