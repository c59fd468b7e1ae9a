import { type KernelArithmetic, type Technique, techniques } from '../../../../kernels/index.js';
import type { AttentionReference } from '../../../../oracles/index.js';
import { formats } from '../../../formats/index.js';
import { normaliseBound } from '../finish.js';
import type { ElementRow } from '../bounds.generated.js';
import { formLength, type BoundMemory } from '../memory.js';
import type { RowPlan } from '../row-plan.js';
import type { SunkRow } from '../row-units.js';
import { combinations, type Bounds } from '../rows-bound.js';
import {
  exponentWeightError,
  qkAccumulateBound,
  scaleSubtractBound,
  scoreWeightError,
} from '../scores.js';
import {
  pvAccumulateBound,
  rescaleBound,
  rescaleWeightError,
  rowSumBound,
  sumUnderflow,
} from '../sums.js';
import {
  elementTerms,
  type RowErrors,
  type RowTerms,
  type TechniqueBound,
} from '../technique-bound.js';
import { exp2HardwareBound, exp2PolynomialBound, pRoundBound, roundedRowSum } from '../weights.js';

/** The bounds of the techniques that act before the output is rounded. */
export const innerTechniques: Readonly<Record<Exclude<Technique, 'output-round'>, TechniqueBound>> =
  {
    'qk-accumulate': qkAccumulateBound,
    'scale-subtract': scaleSubtractBound,
    'exp2-hardware': exp2HardwareBound,
    'exp2-polynomial': exp2PolynomialBound,
    'p-round': pRoundBound,
    rescale: rescaleBound,
    'pv-accumulate': pvAccumulateBound,
    'row-sum': rowSumBound,
    normalise: normaliseBound,
  };

/** Their names. */
export const innerNames = techniques.filter((name) => name !== 'output-round');

/** A bound times a factor; infinite where the factor is. */
export function scaled(bound: number, factor: number): number {
  return factor === Infinity ? Infinity : bound * factor;
}

/** One row whose tiles have all been weighed. */
export interface FinishedRow {
  /** Its place in the tile of rows, and among all rows. */
  readonly local: number;
  readonly row: number;
  readonly keys: number;
  readonly errors: RowErrors;
  readonly plan: RowPlan;
  /**
   * [vDim]: the largest magnitudes of the values that it sees, by column; and the factor that those in memory are multiplied by.
   */
  readonly columnLargest: Float64Array;
  readonly valueScale: number;
  /** The row's sink; null without one. */
  readonly sunk: SunkRow | null;
}

/** The context in which the elements of all rows are finished. */
export interface ElementFinisher {
  readonly reference: AttentionReference;
  readonly arithmetic: KernelArithmetic;
  readonly memory: BoundMemory;
  /** The bounds to fill. */
  readonly out: Bounds;
  /** See `typicalScoreShare` and `anyOrderLoss`. */
  readonly typicalScores: number;
  readonly anyOrder: number;
}

/** Columns of a row's elements in memory: those that are given, and the first of those that are written. */
const given = { exact: 0, radius: 1, largestValue: 2, magnitude: 4 } as const;
const firstWritten = 13;

/** Directions of rounding, as the loop knows them. */
const directions = { nearest: 0, truncated: 1, stochastic: 2 } as const;

/** The techniques' forms, in the loop's order: coefficients of `elementTerms`, then the constant. */
function writeForms({ forms, has }: BoundMemory, terms: RowTerms): void {
  innerNames.forEach((name, index) => {
    const { constant = 0, ...coefficients } = innerTechniques[name].elements(terms);
    const first = index * formLength;
    let present = 0;
    elementTerms.forEach((term, at) => {
      const coefficient = coefficients[term];
      if (coefficient === undefined) return;
      forms.view[first + at] = coefficient;
      present |= 1 << at;
    });
    forms.view[first + elementTerms.length] = constant;
    has.view[index] = present;
  });
}

/** The numbers of a row that the loop takes. */
function elementRow(
  { arithmetic, typicalScores, anyOrder }: ElementFinisher,
  { local, keys, columnLargest, plan, sunk, valueScale }: FinishedRow,
  terms: RowTerms,
  inflation: number,
): ElementRow {
  const { outputFormat, outputRounding, underflow, finish, dropout } = arithmetic;
  const { errors } = terms;
  const { precision, minExponent, maxExponent, maxFinite, specials } = formats[outputFormat];
  const typicalWeights =
    scoreWeightError(terms).rootMeanSquare * typicalScores +
    exponentWeightError(terms).rootMeanSquare +
    rescaleWeightError(terms).rootMeanSquare;
  const ofSize =
    keys * anyOrder + errors.rowSum + errors.rescaledSum + finish.normalise + roundedRowSum(terms);
  return {
    scale: valueScale,
    // Relative to the whole row sum, as the output is, and not to that of the keys.
    share: sunk?.share ?? 1,
    lost: terms.lost,
    largestValue: columnLargest.reduce((most, x) => Math.max(most, x), 0),
    // Elements whose sums, which are not yet divided by the row sum, may leave their range have no bound.
    reach: keys * 2 ** plan.reach[local],
    largestSum: arithmetic.largestSum,
    inflation,
    typicalWeights,
    ofSize,
    ofMagnitude: dropout?.factor ?? 0,
    fixed: sumUnderflow(arithmetic, keys) + underflow.sums,
    subnormalBias: errors.subnormalBias,
    exponentialVariance: errors.exponentialVariance,
    squaredMagnitude: keys * anyOrder ** 2 + arithmetic.partials ** 2,
    precision,
    minExponent,
    maxExponent,
    maxFinite,
    saturates: specials === 'finite',
    direction: directions[outputRounding],
  };
}

/**
 * Writes the bounds of a row's elements: the techniques' bounds times `inflation`, and the rounding of the output. The systematic
 * part and the random one: docs/theory/bounds.md, "The spread".
 */
export function finishElements(
  finisher: ElementFinisher,
  finished: FinishedRow,
  terms: RowTerms,
  inflation: number,
): void {
  const { reference, memory, out } = finisher;
  const { values, radius, magnitude } = reference.quantities.out;
  const { local, row, columnLargest } = finished;
  const { vStride, elements, kernels } = memory;
  const vDim = columnLargest.length;
  const place = (column: number) => column * vStride;
  const ofRow = (numbers: Float64Array) => numbers.subarray(row * vDim, (row + 1) * vDim);
  elements.view.set(ofRow(values), place(given.exact));
  elements.view.set(ofRow(radius), place(given.radius));
  elements.view.set(ofRow(magnitude), place(given.magnitude));
  elements.view.set(columnLargest, place(given.largestValue));
  writeForms(memory, terms);
  const numbers = memory.elementRow.write(elementRow(finisher, finished, terms, inflation));
  kernels.finishElements(memory.tile, numbers, local, vDim);
  const written = [
    ...innerNames.map((name) => out.techniques[name]),
    out.techniques['output-round'],
    ...combinations.map((name) => out[name]),
  ];
  written.forEach((target, index) => {
    const first = place(firstWritten + index);
    target.set(elements.view.subarray(first, first + vDim), local * vDim);
  });
}
