import {
  formats,
  isBeyondFloat32,
  smallestSubnormal,
  unitRoundoff,
  type FormatName,
} from '../../src/formats/index.js';
import { featureNames, type FeatureName, type Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { largestScore32, roundoff32, scaleErrorOf, type KernelArithmetic } from '../arithmetic.js';
import type { GradientArithmetic } from '../backward/model.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel } from '../kernel-model.js';
import { exactLaws, scaleKinds, type ModelPromises, type PremiseDeclaration } from '../promises.js';
import { checkKeys } from '../setting-values.js';
import { createNaiveAttention } from './attention.js';
import { createAttributedNaive } from './attributed-attention.js';
import { createNaiveBackward } from './gradients.js';

/** Error of exp, tanh and log rounded once from fp64, whose own functions are within an ulp. */
const roundedOnce = roundoff32 * (1 + 2 ** -20);

/** Throws a RequestError for inputs that fp32 does not hold. */
function checkInputs(problem: Problem): void {
  for (const name of ['q', 'k', 'v'] as const)
    if (isBeyondFloat32(problem[name]))
      throw new RequestError(
        `${name} is ${problem[name].scales === undefined ? problem[name].format : 'scaled by factors'}, which this kernel rounds to fp32: there are no bounds; give fp32 or shorter`,
      );
  if (problem.sink?.logits.format === 'fp64')
    throw new RequestError(
      'the sink is fp64, which this kernel rounds to fp32: there are no bounds; give fp32 or shorter',
    );
}

/** Errors of the exponents, whose scores are rounded to `intermediate` where that is not fp32. */
function exponentErrors(problem: Problem, intermediate: FormatName): KernelArithmetic['exponent'] {
  const scaleError = scaleErrorOf(problem.scale);
  const isAdded = problem.bias !== undefined || problem.alibiSlopes !== undefined;
  const stored = intermediate === 'fp32' ? 0 : unitRoundoff(formats[intermediate]);
  return {
    // The subtraction of the maximum.
    ofDistance: roundoff32,
    // The product with the scale, and the numbers written to memory before and after it; the sum with the addend, written
    // too.
    ofScore:
      (roundoff32 + Math.abs(scaleError) + 2 * stored + (isAdded ? roundoff32 + stored : 0)) *
      (1 + 2 ** -6),
    // Bias and ALiBi are rounded together.
    ofAddend: roundoff32 * (1 + 2 ** -6),
    common: 0,
    // A quotient, a tanh, a product, and the numbers written to memory; tanh has a slope of 1 at
    // most.
    ofSoftcap:
      problem.softcap === null
        ? 0
        : (3 * roundoff32 + scaleErrorBound(problem.softcap) + stored) * (1 + 2 ** -6),
    // Half a subnormal each time that a score is written: raw, scaled, capped, with the addend; and once for the
    // addend, in fp32.
    absolute:
      (Math.abs(problem.scale) + (problem.softcap === null ? 1 : 2) + (isAdded ? 2 : 0)) *
      (smallestSubnormal(formats[intermediate]) / 2) *
      Math.LOG2E *
      (1 + 2 ** -6),
  };
}

/**
 * The arithmetic of the textbook kernel (kernels/naive): everything fp32, one operation after the
 * other, with scores and weights rounded to `intermediate` between the passes.
 * @throws RequestError for inputs that fp32 does not hold, which the kernel rounds
 */
export function naiveArithmetic(problem: Problem, intermediate: FormatName): KernelArithmetic {
  checkInputs(problem);
  return {
    description: `textbook attention with ${intermediate} between its passes`,
    scores: { kind: 'sequential' },
    scaleError: scaleErrorOf(problem.scale),
    // Well below the largest finite number, so that no error of a score reaches it.
    largestScore: Math.min(largestScore32, formats[intermediate].maxFinite * (1 - 2 ** -6)),
    scoreLimit: Infinity,
    exponent: exponentErrors(problem, intermediate),
    exponential: {
      hardware: roundedOnce,
      polynomial: 0,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    maximum: { kind: 'whole-row' },
    weightFormat: intermediate,
    overflow: 'fault',
    values: { kind: 'sequential' },
    rowSumAdditions: 0,
    rowSumAddition: roundoff32,
    rowSumRounded: false,
    partials: 0,
    finish: { normalise: roundoff32, logarithm: roundedOnce, elementwise: roundoff32 },
    // The factor is rounded once, and the product with it.
    ...(problem.dropout === undefined
      ? {}
      : { dropout: { roundings: 1, factor: 2 * roundoff32 * (1 + 2 ** -6) } }),
    outputFormat: problem.q.format,
    outputRounding: 'nearest',
    largestSum: 2 ** 126,
    underflow: { weights: 2 ** -149, sums: 2 ** -149 },
  };
}

/** A cap that is rounded to fp32 enters twice. */
function scaleErrorBound(cap: number): number {
  return 2 * Math.abs(scaleErrorOf(cap));
}

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
