import { specialFunctionEvidence, tensorCoreEvidence } from '../../src/hardware/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting, KernelSettings } from '../kernel-model.js';
import { attributeLumped } from '../lumped-attribution.js';
import { exactLaws, type ModelPromises } from '../promises.js';
import { createForward, type Forward } from '../online-softmax/forward.js';
import type { Recipe } from '../online-softmax/recipe.js';
import { exp2Units } from '../online-softmax/units.js';
import { checkKeys, choiceValue } from '../setting-values.js';
import { fa1Arithmetic } from './arithmetic.js';
import { fa1Recipe, type Fa1Architecture } from './recipe.js';

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_80 (default) or sm_90' },
];

/** A problem with the choices of its settings. */
interface Prepared {
  readonly shape: ProblemShape;
  readonly architecture: Fa1Architecture;
  readonly recipe: Recipe;
  readonly forward: Forward;
}

/** @throws RequestError for an unknown key, a bad value or a problem that the kernel does not take */
function prepared(problem: Problem, texts: KernelSettings): Prepared {
  checkKeys('fa1', settings, texts);
  const architecture = choiceValue('architecture', texts.get('architecture') ?? 'sm_80', [
    'sm_80',
    'sm_90',
  ] as const);
  const shape = problemShape(problem);
  const recipe = fa1Recipe(problem, shape, architecture);
  return { shape, architecture, recipe, forward: createForward(problem, shape, recipe) };
}

/** Evidence for the bits, a line each. */
function fa1Evidence({ architecture, recipe }: Prepared): string[] {
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
  prepare: (problem, texts) => {
    const kernel = prepared(problem, texts);
    const { shape, recipe, forward, architecture } = kernel;
    return {
      shape,
      outFormat: recipe.outFormat,
      pieces: forward.tiles,
      settings: { architecture },
      evidence: fa1Evidence(kernel),
      run: (piece) => {
        const { first, rows } = forward.rowsOf(piece);
        const { out, lse, rescales, counters } = forward.runTile(piece);
        return { firstRow: first, rows, out, lse, rescales, counters: { ...counters } };
      },
    };
  },
  attribute: (problem, texts) => {
    const { shape, recipe, forward, architecture } = prepared(problem, texts);
    return attributeLumped(problem, {
      model: 'fa1',
      shape,
      outFormat: recipe.outFormat,
      settings: { architecture },
      pieces: forward.tiles,
      rowsOf: forward.rowsOf,
      unrounded: (piece) => {
        const { out, lse } = forward.runUnrounded(piece);
        return { out: Float64Array.from(out), lse: Float64Array.from(lse) };
      },
    });
  },
  arithmetic: (problem, texts) => {
    const { shape, recipe, architecture } = prepared(problem, texts);
    return fa1Arithmetic(problem, shape, recipe, `fa1 (${architecture})`);
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
