import {
  describeQuantisation,
  quantisationOf,
  type PremiseDeclaration,
  type QuantisationSteps,
} from '../../../../../kernels/index.js';
import { plainFormats } from '../../../../formats/index.js';
import { scaledTensors, type Problem } from '../../../../problem/index.js';
import { RequestError } from '../../../../request-error.js';
import { premisePresets } from '../../../premises/premise-words.js';
import { quantisedInputs } from '../../../premises/quantised-inputs.js';
import { predictWeighted, softmaxRow, type RowPrediction } from '../../prediction.js';
import { RowReader } from '../../row-reader.js';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
  SampleRow,
} from '../../hypothesis.js';
import { quantisationFaults } from './quantisation-faults.js';

/** A kernel that quantises Q and K itself, and how one declares it. */
export interface QuantisingKernel {
  readonly flags: string;
  readonly declared: PremiseDeclaration;
}

const sageAttention1 = {
  qk: 'int8',
  smoothing: 'keys',
  values: 'fp16',
  weights: 'fp16',
  pvAccumulator: 'fp16',
  pvTile: 64,
  exponential: 'hardware',
} as const satisfies PremiseDeclaration;

function preset(name: string): QuantisingKernel {
  return { flags: `--as ${name}`, declared: premisePresets[name].premises };
}

/** The kernels that an output whose kernel declares nothing is compared with. */
export const quantisingKernels: readonly QuantisingKernel[] = [
  { flags: '--as sageattention', declared: sageAttention1 },
  {
    flags: '--as sageattention --set smoothing=none',
    declared: { ...sageAttention1, smoothing: 'none' },
  },
  preset('sageattention2-fp16'),
  preset('sageattention2-fp8'),
  preset('sageattention2-int4'),
  {
    flags: '--premise qk=int8,qBlock=1,kBlock=1,qkScale=scores',
    declared: { qk: 'int8', qBlock: 1, kBlock: 1, qkScale: 'scores' },
  },
  { flags: '--premise qk=nvfp4,qkScale=scores', declared: { qk: 'nvfp4', qkScale: 'scores' } },
];

/** Results of a kernel that multiplies another problem. */
function predictorOf(
  faulty: Problem,
  { shape }: HypothesisContext,
): (row: SampleRow) => RowPrediction {
  const reader = new RowReader(faulty, shape);
  return (row) => {
    const place = { ...row, reported: (x: number) => reader.reportedLse(row.row, x) };
    return predictWeighted(
      place,
      softmaxRow(reader.scores(row.row), reader.valuesOf(row.row, row.kv)),
    );
  };
}

/** The problem that a kernel multiplies; null where it is not known to be quantised so. */
function multiplied(
  problem: Problem,
  declared: PremiseDeclaration,
  steps: QuantisationSteps = {},
): Problem | null {
  try {
    return quantisedInputs(problem, declared, steps);
  } catch (error) {
    if (error instanceof RequestError) return null;
    throw error;
  }
}

/** Hypotheses of kernels that quantise Q and K, on a problem of numbers that are not quantised. */
function* ofDefault(context: HypothesisContext): Generator<Hypothesis> {
  const { problem } = context.input;
  const isPlain = scaledTensors.every(
    (name) => plainFormats.includes(problem[name].format) && problem[name].scales === undefined,
  );
  if (!isPlain || problem.rows !== undefined) return;
  for (const { declared } of quantisingKernels) {
    const quantisation = quantisationOf(declared)!;
    const kinds =
      declared.smoothing === 'keys' ? (['corrected', 'as-smoothed'] as const) : [undefined];
    for (const smoothedLse of kinds) {
      const own = multiplied(problem, { ...declared, smoothedLse });
      if (own === null) continue;
      yield {
        id: 'quantised-operands',
        technique: 'qk-accumulate',
        statement: `the kernel quantises its inputs: ${describeQuantisation(quantisation)}${smoothedLse === 'as-smoothed' && context.sample.some(({ observedLse }) => observedLse !== null) ? ', whose LSE it gives' : ''}`,
        cause: `the kernel quantises its inputs: ${describeQuantisation(quantisation)}`,
        predict: predictorOf(own, context),
        ofAll: true,
      };
    }
  }
}

/** Hypotheses of wrong quantisations, on the problem that a kernel quantises as it declares. */
function* ofDeclared(
  context: HypothesisContext,
  original: Problem,
  declared: PremiseDeclaration,
): Generator<Hypothesis> {
  for (const fault of quantisationFaults) {
    if (fault.applies?.(declared, original) === false) continue;
    const faulty = multiplied(original, { ...declared, ...fault.declared }, fault.steps);
    if (faulty === null) continue;
    const { lseShift } = context.input.problem;
    // Scores that hold the scale twice are multiplied by it again.
    const scale = fault.id === 'scale-twice' ? original.scale * Math.LN2 : faulty.scale;
    yield {
      id: fault.id,
      technique: 'qk-accumulate',
      statement: fault.statement,
      predict: predictorOf({ ...faulty, scale, ...(lseShift && { lseShift }) }, context),
    };
  }
}

/** Hypotheses of an LSE whose smoothing term is wrong. */
function* ofSmoothedLse({ onlyLse, input: { problem } }: HypothesisContext): Generator<Hypothesis> {
  const { lseShift } = problem;
  if (!onlyLse || lseShift === undefined) return;
  const terms = [
    ['lse-without-smoothing', 'the LSE lacks the term scale·q·mean of the smoothing', -1],
    [
      'lse-smoothing-sign',
      'the LSE has the term scale·q·mean of the smoothing with the wrong sign',
      -2,
    ],
    ['lse-smoothing-twice', 'the LSE has the term scale·q·mean of the smoothing twice', 1],
    [
      'lse-smoothing-unscaled',
      'the LSE has the term q·mean of the smoothing without the scale',
      1 / (problem.quantisedFrom?.scale ?? 1) - 1,
    ],
    [
      'lse-smoothing-base-2',
      'the LSE has the term scale·q·mean of the smoothing in base 2',
      Math.LOG2E - 1,
    ],
  ] as const;
  for (const [id, statement, times] of terms)
    yield {
      id,
      technique: 'normalise',
      statement,
      predict: (row) => ({
        ...row.correct,
        lse: row.correct.lse + times * lseShift.values[row.row],
      }),
    };
}

/**
 * Kernels that quantise Q and K themselves: that one does, where it declares nothing; what it does otherwise than it declares, where
 * it declares that it does.
 */
export const quantisationHypotheses: HypothesisFamily = function* (context) {
  const { problem, premises = {} } = context.input;
  const { quantisedFrom } = problem;
  if (quantisedFrom === undefined) {
    yield* ofDefault(context);
    return;
  }
  yield* ofSmoothedLse(context);
  yield* ofDeclared(context, quantisedFrom, premises);
};
