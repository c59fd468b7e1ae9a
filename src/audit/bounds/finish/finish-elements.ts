import { type KernelArithmetic, type Technique, techniques } from '../../../../kernels/index.js';
import type { AttentionReference } from '../../../../oracles/index.js';
import { distanceToFormat, normaliseBound, outputRounding, roundingSpread } from '../finish.js';
import type { BoundMemory } from '../memory.js';
import type { RowPlan } from '../row-plan.js';
import type { SunkRow } from '../row-units.js';
import type { Bounds } from '../rows-bound.js';
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
  type ElementTerms,
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

/** A bound times a factor; nothing is known where the factor is infinite. */
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
  /** [vDim]: the largest magnitudes of the values that it sees, by column; and what those in memory are times. */
  readonly columnLargest: Float64Array;
  readonly valueScale: number;
  /** What a sink does to it; null without. */
  readonly sunk: SunkRow | null;
}

/** What the elements of all rows are finished by. */
export interface ElementFinisher {
  readonly reference: AttentionReference;
  readonly arithmetic: KernelArithmetic;
  readonly memory: BoundMemory;
  /** Filled. */
  readonly out: Bounds;
  /** See `typicalScoreShare` and `anyOrderLoss`. */
  readonly typicalScores: number;
  readonly anyOrder: number;
  /** Of the row at hand. */
  readonly elements: RowElements;
}

/** What is known of a row's elements, [vDim] each, times the power of two that values in memory are times. */
export type RowElements = Readonly<
  Record<keyof ElementTerms | 'squares' | 'factor' | 'sum', Float64Array>
>;

/** Room for the elements of a row. */
export function createRowElements(vDim: number): RowElements {
  const names = [...elementTerms, 'squares', 'factor', 'sum'] as const;
  return Object.fromEntries(
    names.map((name) => [name, new Float64Array(vDim)]),
  ) as unknown as RowElements;
}

/**
 * What is known of the elements of a row, and the factor of its bounds: `inflation`, and that of the output's unit; ∞ for
 * elements whose sums, which are not yet divided by the row sum, may leave their range.
 */
function gatherElements(
  { reference, arithmetic, memory, elements }: ElementFinisher,
  { local, row, keys, columnLargest, plan, sunk, valueScale: scale }: FinishedRow,
  { lost }: RowTerms,
  inflation: number,
): void {
  const { values, magnitude } = reference.quantities.out;
  const { squares: ofSquares, moved, accumulated, rescaled } = memory;
  const largestValue = columnLargest.reduce((most, x) => Math.max(most, x), 0);
  const reach = keys * 2 ** plan.reach[local];
  // Relative to the whole row sum, as the output is, and not to that of the keys.
  const share = sunk?.share ?? 1;
  const vDim = columnLargest.length;
  for (let c = 0; c < vDim; c++) {
    const inMemory = local * memory.vStride + c;
    const size = Math.abs(values[row * vDim + c]) * scale;
    const squares = ofSquares.view[inMemory] * share;
    elements.size[c] = size;
    elements.magnitude[c] = magnitude[row * vDim + c] * scale;
    elements.squares[c] = squares;
    // The subtraction cancels, up to an error of fp64.
    const variance = squares - size * size;
    elements.scatter[c] = Math.sqrt(Math.max(0, variance) + size * size * 2 ** -40);
    elements.moved[c] = moved.view[inMemory] * share;
    elements.accumulated[c] = accumulated.view[inMemory] * share;
    elements.rescaled[c] = rescaled.view[inMemory] * share;
    elements.underflow[c] = lost * (largestValue * scale + size);
    const overflows = columnLargest[c] * reach >= arithmetic.largestSum;
    elements.factor[c] = overflows ? Infinity : inflation / scale;
  }
}

/** Writes the bounds of the techniques before the output's rounding, and their sums. */
function finishTechniques(
  { out, elements }: ElementFinisher,
  { local }: FinishedRow,
  terms: RowTerms,
): void {
  const { factor, sum } = elements;
  const vDim = sum.length;
  sum.fill(0);
  for (const name of innerNames) {
    const { constant = 0, ...coefficients } = innerTechniques[name].elements(terms);
    const bounds = out.techniques[name].subarray(local * vDim, (local + 1) * vDim).fill(constant);
    for (const term of elementTerms) {
      const coefficient = coefficients[term];
      if (coefficient === undefined) continue;
      const values = elements[term];
      for (let c = 0; c < vDim; c++) bounds[c] += coefficient * values[c];
    }
    for (let c = 0; c < vDim; c++) {
      bounds[c] = scaled(bounds[c], factor[c]);
      sum[c] += bounds[c];
    }
  }
}

/**
 * Writes the bounds of a row's elements: the techniques' bounds times `inflation`, and the rounding of the output.
 * No closure of the finisher's: its compiled code outlives an audit.
 */
export function finishElements(
  finisher: ElementFinisher,
  finished: FinishedRow,
  terms: RowTerms,
  inflation: number,
): void {
  gatherElements(finisher, finished, terms, inflation);
  finishTechniques(finisher, finished, terms);
  const { reference, arithmetic, memory, out, typicalScores, anyOrder, elements } = finisher;
  const { values, radius: radii } = reference.quantities.out;
  const { vDim } = reference.shape;
  const { outputFormat, outputRounding: direction, underflow, finish, dropout } = arithmetic;
  const { local, row, keys, sunk, valueScale: scale } = finished;
  const { errors } = terms;
  const typicalWeights =
    scoreWeightError(terms).rootMeanSquare * typicalScores +
    exponentWeightError(terms).rootMeanSquare +
    rescaleWeightError(terms).rootMeanSquare;
  const ofSize =
    keys * anyOrder + errors.rowSum + errors.rescaledSum + finish.normalise + roundedRowSum(terms);
  const ofMagnitude = dropout?.factor ?? 0;
  const fixed = sumUnderflow(arithmetic, keys) + underflow.sums;
  const squaredMagnitude = keys * anyOrder ** 2 + arithmetic.partials ** 2;
  const share = sunk?.share ?? 1;
  for (let c = 0; c < vDim; c++) {
    const at = local * vDim + c;
    const inMemory = local * memory.vStride + c;
    const exact = values[row * vDim + c];
    const radius = radii[row * vDim + c];
    const sum = elements.sum[c];
    const factor = elements.factor[c];
    const size = elements.size[c];
    const magnitude = elements.magnitude[c];
    // Weights beyond fp64 have no bound, nor known roundings, whose products with zeros are no numbers.
    const predicted =
      inflation === Infinity ? 0 : (memory.predicted.view[inMemory] * share) / scale;
    // The nearest number cannot be farther than the exact output's.
    const distance = direction === 'nearest' ? distanceToFormat(outputFormat, exact) : Infinity;
    const half =
      sum === Infinity
        ? Infinity
        : Math.min(outputRounding(outputFormat, exact, sum, direction), distance + sum);
    out.techniques['output-round'][at] = half;
    out.total[at] = sum + half + radius;
    const systematic =
      typicalWeights * elements.scatter[c] +
      // Σ b|v| for biases b of at most w each, by Cauchy and Schwarz.
      Math.sqrt(errors.subnormalBias * elements.squares[c]) +
      elements.accumulated[c] +
      elements.rescaled[c] +
      ofSize * size +
      ofMagnitude * magnitude +
      2 * elements.underflow[c] +
      fixed;
    out.systematic[at] = scaled(systematic, factor) + radius;
    const random =
      memory.spread.view[inMemory] * share ** 2 +
      errors.exponentialVariance * size * size +
      squaredMagnitude * magnitude ** 2;
    const ofWeights = scaled(random, factor ** 2);
    const known = scaled(Math.abs(predicted), inflation);
    const spread = {
      predicted,
      noise: Math.sqrt(ofWeights),
      systematic: out.systematic[at] + (known - Math.abs(predicted)),
    };
    const rounded = roundingSpread(outputFormat, exact, spread, direction);
    out.systematic[at] += rounded.systematic;
    out.known[at] = rounded.known ?? known;
    out.deviation[at] = Math.sqrt(ofWeights + rounded.variance + out.known[at] ** 2);
  }
}
