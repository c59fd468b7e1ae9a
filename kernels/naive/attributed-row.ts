import {
  decodeToFloat64,
  encodeFromFloat64,
  type FormatName,
  formats,
} from '../../src/formats/index.js';
import type { EmulatedNames } from '../techniques.js';
import { runStages } from '../run-groups.js';
import { rowExponentials, rowFinish, rowOutput, rowSum } from './attributed-output.js';
import {
  rowDots,
  rowExponents,
  type RowOperands,
  type NaiveScoreLaw,
} from './attributed-scores.js';
import type { NaiveTechnique } from './techniques.js';

/** The results of a row in one run. */
export interface AttributedRow {
  /** [vDim] */
  readonly out: Float64Array;
  /** Natural logarithm of the sum of exponentials. */
  readonly lse: number;
}

/** Computes a row in every run. */
export type AttributedRun = (operands: RowOperands) => readonly AttributedRow[];

/** Parameters of a row's computation, besides its operands. */
export interface NaiveLaw extends NaiveScoreLaw {
  /** Divisor of the weights that dropout keeps, 1 − its probability. */
  readonly share: number;
}

/** The techniques that act in each stage of a row. */
const stages = {
  products: ['input-round', 'qk-accumulate'],
  exponents: ['score-round', 'scale-subtract', 'softcap', 'bias'],
  exponentials: ['exp'],
  sums: ['row-sum'],
  finishes: ['normalise'],
  weights: ['p-round'],
  outputs: ['pv-accumulate'],
  rounded: ['output-round'],
} as const satisfies Readonly<Record<string, readonly NaiveTechnique[]>>;

/** Rounds numbers to a format and back, to nearest even, in place. */
export function roundingTo(format: FormatName): (values: Float64Array) => void {
  return (values) => {
    decodeToFloat64(encodeFromFloat64(formats[format], values), formats[format], values);
  };
}

/**
 * The textbook kernel on a row that sees keys, in every run: stage by stage, each computed once for all
 * runs that have emulated the same techniques until then.
 */
export function createAttributedRow(
  choices: readonly EmulatedNames[],
  law: NaiveLaw,
  outFormat: FormatName,
): AttributedRun {
  const [products, exponents, exponentials, sums, finishes, weights, outputs, rounded] = runStages(
    choices,
    [
      ...[stages.products, stages.exponents, stages.exponentials, stages.sums],
      ...[stages.finishes, stages.weights, stages.outputs, stages.rounded],
    ],
  );
  const roundOutput = roundingTo(outFormat);

  return (operands) => {
    const { kept } = operands;
    const dropout = kept === null ? null : { kept, share: law.share };
    const ofProducts = products.groups.map(({ emulated }) => rowDots(operands, emulated));
    const ofExponents = exponents.groups.map(({ emulated }, i) =>
      rowExponents(ofProducts[exponents.parents[i]], operands, law, emulated),
    );
    const ofExponentials = exponentials.groups.map(({ emulated }, i) => {
      const from = ofExponents[exponentials.parents[i]];
      return { maximum: from.maximum, ...rowExponentials(from, emulated) };
    });
    const ofSums = sums.groups.map(({ emulated }, i) => {
      const from = ofExponentials[sums.parents[i]];
      return { ...from, sum: rowSum(from, emulated) };
    });
    const ofFinishes = finishes.groups.map(({ emulated }, i) => {
      const from = ofSums[finishes.parents[i]];
      return rowFinish(from.values, from, dropout, emulated);
    });
    const ofWeights = weights.groups.map(({ emulated }, i) => {
      const { weights: unrounded, lse } = ofFinishes[weights.parents[i]];
      if (!emulated.has('p-round')) return { values: unrounded, lse };
      const values = unrounded.slice();
      law.round(values);
      return { values, lse };
    });
    const ofOutputs = outputs.groups.map(({ emulated }, i) => {
      const { values, lse } = ofWeights[outputs.parents[i]];
      return { out: rowOutput(values, operands, emulated), lse };
    });
    const ofRounded = rounded.groups.map(({ emulated }, i) => {
      const { out: unrounded, lse } = ofOutputs[rounded.parents[i]];
      if (!emulated.has('output-round')) return { out: unrounded, lse };
      const out = unrounded.slice();
      roundOutput(out);
      return { out, lse };
    });
    return rounded.groupOf.map((group) => ofRounded[group]);
  };
}

const nothing: EmulatedNames = new Set();

/** A row's largest weight, exact, and its key, −1 for none above 0; the first among equals. */
export function largestWeight(
  operands: RowOperands,
  law: NaiveLaw,
): { key: number; weight: number } {
  const exponents = rowExponents(rowDots(operands, nothing), operands, law, nothing);
  const exponentials = rowExponentials(exponents, nothing);
  const from = { maximum: exponents.maximum, sum: rowSum(exponentials, nothing) };
  const { kept } = operands;
  const dropout = kept === null ? null : { kept, share: law.share };
  const { weights } = rowFinish(exponentials.values, from, dropout, nothing);
  const weight = weights.reduce((largest, w) => Math.max(largest, w), 0);
  const at = weight > 0 ? weights.indexOf(weight) : -1;
  return { key: at < 0 ? -1 : operands.keys[at], weight };
}
