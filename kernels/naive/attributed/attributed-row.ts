import { decodeToFloat64, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { EmulatedNames } from '../../attributed-kernel.js';
import { runStages } from '../../run-groups.js';
import { rowOutput } from './row-output.js';
import { rowDots, rowExponents, type RowOperands, type ScoreLaw } from './row-scores.js';
import { rowExponentials, rowFinish, rowSum } from './row-weights.js';
import type { NaiveTechnique } from './techniques.js';

/** The results of a row in one run. */
export interface AttributedRow {
  /** [vDim] */
  readonly out: Float64Array;
  /** Natural logarithm. */
  readonly lse: number;
}

/** The techniques that act in each stage of a row. */
const stages = {
  products: ['input-round', 'qk-accumulate'],
  exponents: ['score-round', 'scale-subtract', 'softcap'],
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
  law: ScoreLaw,
  outFormat: FormatName,
): (operands: RowOperands) => readonly AttributedRow[] {
  const [products, exponents, exponentials, sums, finishes, weights, outputs, rounded] = runStages(
    choices,
    [
      ...[stages.products, stages.exponents, stages.exponentials, stages.sums],
      ...[stages.finishes, stages.weights, stages.outputs, stages.rounded],
    ],
  );
  const roundOutput = roundingTo(outFormat);

  return (operands) => {
    const ofProducts = products.groups.map(({ emulated }) => rowDots(operands, emulated));
    const ofExponents = exponents.groups.map(({ emulated }, i) =>
      rowExponents(ofProducts[exponents.parents[i]], law, emulated),
    );
    const ofExponentials = exponentials.groups.map(({ emulated }, i) => {
      const from = ofExponents[exponentials.parents[i]];
      return { maximum: from.maximum, values: rowExponentials(from.exponents, emulated) };
    });
    const ofSums = sums.groups.map(({ emulated }, i) => {
      const from = ofExponentials[sums.parents[i]];
      return { ...from, sum: rowSum(from.values, emulated) };
    });
    const ofFinishes = finishes.groups.map(({ emulated }, i) => {
      const { values, maximum, sum } = ofSums[finishes.parents[i]];
      return rowFinish(values, maximum, sum, emulated);
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
