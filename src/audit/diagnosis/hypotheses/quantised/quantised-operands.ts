import {
  describeQuantisation,
  quantisationOf,
  type PremiseDeclaration,
  type QuantisationSteps,
} from '../../../../../kernels/index.js';
import { plainFormats } from '../../../../formats/index.js';
import {
  scaledTensors,
  type LseShift,
  type Problem,
  type ProblemShape,
} from '../../../../problem/index.js';
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

/** A problem without what its kernel adds to the LSE. */
function withoutShift(problem: Problem): Problem {
  const { lseShift, ...rest } = problem;
  return lseShift === undefined ? problem : rest;
}

/** The cause of a kernel that quantises Q and K so, in a clause. */
function quantisationCause(declared: PremiseDeclaration): string {
  return `the kernel quantises its inputs: ${describeQuantisation(quantisationOf(declared)!)}`;
}

/** The cause with an LSE that is of smoothed K. */
const withItsLse = (cause: string) => `${cause}, whose LSE it gives`;

/** Whether the sentence of a cause says that a kernel quantises Q and K so. */
export function saysQuantisation(sentence: string, declared: PremiseDeclaration): boolean {
  const cause = quantisationCause(declared);
  return sentence === cause || sentence === withItsLse(cause);
}

/** Makes the problem that a kernel multiplies. */
type MakeProblem = () => Problem;

/**
 * Readers of the problems that kernels multiply, one at a time: each is several times as large as K and V, so that one is dropped
 * before another is made.
 */
class ReaderSlot {
  readonly #shape: ProblemShape;
  #held: { readonly make: MakeProblem; readonly reader: RowReader } | null = null;

  constructor(shape: ProblemShape) {
    this.#shape = shape;
  }

  /** The reader of the problem that `make` makes, without what the kernel adds to the LSE. */
  of(make: MakeProblem): RowReader {
    if (this.#held?.make === make) return this.#held.reader;
    this.#held = null;
    const reader = new RowReader(withoutShift(make()), this.#shape);
    this.#held = { make, reader };
    return reader;
  }

  clear(): void {
    this.#held = null;
  }
}

/**
 * Results of a kernel that multiplies another problem, LSEs without what it adds to them. They are kept by row, since its problem
 * is not.
 */
function predictorOf(make: MakeProblem, slot: ReaderSlot): (row: SampleRow) => RowPrediction {
  const known = new Map<number, RowPrediction>();
  return (row) => {
    const found = known.get(row.row);
    if (found !== undefined) return found;
    const reader = slot.of(make);
    const place = { ...row, reported: (x: number) => reader.reportedLse(row.row, x) };
    const weighted = softmaxRow(reader.scores(row.row), reader.valuesOf(row.row, row.kv));
    const prediction = predictWeighted(place, weighted);
    known.set(row.row, prediction);
    return prediction;
  };
}

/** A prediction with what a kernel adds to its LSE. */
function withShift(
  predict: (row: SampleRow) => RowPrediction,
  shift: LseShift | undefined,
): (row: SampleRow) => RowPrediction {
  if (shift === undefined) return predict;
  return (row) => {
    const prediction = predict(row);
    return { ...prediction, lse: prediction.lse + shift.values[row.row] };
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
  const slot = new ReaderSlot(context.shape);
  for (const { declared } of quantisingKernels) {
    // The problem is made once for both ways to give the LSE, and again for rows that are asked for later.
    const own = firstOf(multiplied(problem, declared), () => quantisedInputs(problem, declared));
    if (own === null) continue;
    const predict = predictorOf(own.make, slot);
    const cause = quantisationCause(declared);
    const isLseGiven = context.sample.some(({ observedLse }) => observedLse !== null);
    const kinds =
      declared.smoothing === 'keys' ? (['corrected', 'as-smoothed'] as const) : [undefined];
    for (const smoothedLse of kinds)
      yield {
        id: 'quantised-operands',
        technique: 'qk-accumulate',
        statement: smoothedLse === 'as-smoothed' && isLseGiven ? withItsLse(cause) : cause,
        cause,
        predict: withShift(predict, smoothedLse === 'as-smoothed' ? undefined : own.lseShift),
        ofAll: true,
      };
    slot.clear();
  }
}

/** A problem that is held until it is asked for the first time, and made anew for later times; null for none. */
function firstOf(
  problem: Problem | null,
  again: MakeProblem,
): { readonly make: MakeProblem; readonly lseShift: LseShift | undefined } | null {
  if (problem === null) return null;
  let first: Problem | null = problem;
  return {
    lseShift: problem.lseShift,
    make: () => {
      const made = first ?? again();
      first = null;
      return made;
    },
  };
}

/** Hypotheses of wrong quantisations, on the problem that a kernel quantises as it declares. */
function* ofDeclared(
  context: HypothesisContext,
  original: Problem,
  declared: PremiseDeclaration,
): Generator<Hypothesis> {
  const slot = new ReaderSlot(context.shape);
  for (const fault of quantisationFaults) {
    if (fault.applies?.(declared, original) === false) continue;
    const ofFault = { ...declared, ...fault.declared };
    const made = multiplied(original, ofFault, fault.steps);
    const faulty = firstOf(made, () => quantisedInputs(original, ofFault, fault.steps));
    if (faulty === null) continue;
    const { lseShift = faulty.lseShift } = context.input.problem;
    // Scores that hold the scale twice are multiplied by it again.
    const isTwice = fault.id === 'scale-twice';
    const make = () => {
      const problem = faulty.make();
      return isTwice ? { ...problem, scale: original.scale * Math.LN2 } : problem;
    };
    yield {
      id: fault.id,
      technique: 'qk-accumulate',
      statement: fault.statement,
      predict: withShift(predictorOf(make, slot), lseShift),
    };
    slot.clear();
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
