import type { FormatName } from '../../src/formats/index.js';
import { featureNames, type FeatureName, type Problem } from '../../src/problem/index.js';
import { kernelModel } from '../kernel-features.js';
import type { GradientArithmetic } from '../backward/model.js';
import type { KernelModel } from '../kernel-model.js';
import { exactLaws, type ModelPromises, type PremiseDeclaration, scaleKinds } from '../promises.js';
import { checkKeys } from '../setting-values.js';
import { naiveArithmetic } from './arithmetic.js';
import { createNaiveAttention } from './attention.js';
import { createAttributedNaive } from './attributed-attention.js';
import { createNaiveBackward } from './gradients.js';

const evidence = ['fp32 operations: IEEE 754', 'exp, tanh, log: fp64, rounded once'];

/** Differences between the textbook kernels. */
interface NaiveChoice {
  readonly name: string;
  readonly description: string;
  /** The format that scores and weights are rounded to between the passes. */
  readonly intermediate: (problem: Problem) => FormatName;
  readonly premises: PremiseDeclaration;
  readonly promises: ModelPromises;
  readonly gradients: (problem: Problem) => GradientArithmetic;
}

function naiveModel({
  name,
  description,
  intermediate,
  premises,
  promises,
  gradients,
}: NaiveChoice): KernelModel {
  const features = Object.keys(featureNames) as FeatureName[];
  return kernelModel({
    name,
    description,
    settings: [],
    features,
    prepare: (problem, settings) => {
      checkKeys(name, [], settings);
      const { shape, outFormat, heads, runHead } = createNaiveAttention(
        problem,
        intermediate(problem),
      );
      return { shape, outFormat, pieces: heads, settings: {}, evidence, run: runHead };
    },
    attribute: (problem, settings) => {
      checkKeys(name, [], settings);
      return createAttributedNaive(name, problem, intermediate(problem));
    },
    arithmetic: (problem, settings) => {
      checkKeys(name, [], settings);
      return naiveArithmetic(problem, intermediate(problem));
    },
    premises: () => premises,
    promises: () => promises,
    candidates: [{}],
    unlagged: null,
    exponentials: () => [],
    program: null,
    backward: {
      settings: [],
      features: features.filter((feature) => feature !== 'rows'),
      prepare: (problem, { dout }, settings) => {
        checkKeys(name, [], settings);
        const { shape, format, run } = createNaiveBackward(problem, dout, intermediate(problem));
        return {
          shape,
          format,
          pieces: shape.batch * shape.kvHeads,
          settings: {},
          evidence,
          run: (piece) => ({ ...run(piece), counters: {} }),
          someOrder: null,
        };
      },
      arithmetic: (problem, settings) => {
        checkKeys(name, [], settings);
        return gradients(problem);
      },
      candidates: [{}],
    },
  });
}

const promises: ModelPromises = {
  formats: ['fp32', 'bf16', 'fp16', 'e4m3', 'e5m2'],
  softcap: true,
  specialValues: true,
  laws: exactLaws,
  scales: scaleKinds,
  lse: true,
};

/** The textbook kernel with fp32 between its passes. */
export const naiveFloat32Model = naiveModel({
  name: 'naive-fp32',
  description: 'scores in memory, two-pass softmax, everything fp32',
  intermediate: () => 'fp32',
  premises: { weights: 'fp32' },
  promises,
  gradients: () => ({
    description: 'the textbook kernel in fp32',
    delta: 'weights',
    p: 'fp32',
    ds: 'fp32',
    weights: 'fp32',
    partials: 'fp32',
  }),
});

/** The textbook kernel with the input's format between its passes. */
export const naiveInputModel = naiveModel({
  name: 'naive-input',
  description: 'the same, with scores and weights rounded to the format of Q',
  intermediate: (problem) => problem.q.format,
  premises: { scores: 'input', weights: 'input' },
  promises: {
    ...promises,
    formats: ['fp32', 'bf16', 'fp16'],
    // Scores are kept in the input's format, and fp16 ends at 65504.
    scoreLimit: { raw: 2 ** 15, scaled: 2 ** 15 },
  },
  gradients: ({ q: { format }, dropout, softcap }) => ({
    description: `the textbook kernel, every pass in ${format}`,
    delta: 'weights',
    p: format,
    ds: format,
    scores: format,
    dp: format,
    weights: format,
    partials: format,
    pRoundings: dropout === undefined ? 1 : 2,
    // The product with P, the softcap's slope, the scale.
    dsRoundings: softcap === null ? 2 : 3,
  }),
});
