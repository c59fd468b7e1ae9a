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
import type { ElementTerms, RowErrors, RowTerms, TechniqueBound } from '../technique-bound.js';
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
}

/**
 * Writes the bounds of a row's elements: the techniques' bounds times `inflation`, and the rounding of the output.
 * No closure of the finisher's: its compiled code outlives an audit.
 */
export function finishElements(
  { reference, arithmetic, memory, out, typicalScores, anyOrder }: ElementFinisher,
  finished: FinishedRow,
  terms: RowTerms,
  inflation: number,
): void {
  const { out: exactOut } = reference.quantities;
  const { vDim } = reference.shape;
  const { outputFormat, outputRounding: direction, underflow, finish, dropout } = arithmetic;
  const { local, row, keys, columnLargest, plan, sunk } = finished;
  const { errors } = terms;
  // A power of two: what is in memory is of values times this.
  const scale = finished.valueScale;
  const largestValue = columnLargest.reduce((most, x) => Math.max(most, x), 0);
  const reach = keys * 2 ** plan.reach[local];
  const typicalWeights =
    scoreWeightError(terms).rootMeanSquare * typicalScores +
    exponentWeightError(terms).rootMeanSquare +
    rescaleWeightError(terms).rootMeanSquare;
  const sums = sumUnderflow(arithmetic, keys);
  const ofRounded = roundedRowSum(terms);
  const ofElements = innerNames.map((name) => ({
    firstOrder: innerTechniques[name].elements(terms),
    bounds: out.techniques[name],
  }));
  // Relative to the whole row sum, as the output is, and not to that of the keys.
  const share = sunk?.share ?? 1;
  const squaresOf = memory.squares.view;
  const ofMoved = memory.moved.view;
  const ofAccumulated = memory.accumulated.view;
  const ofRescaled = memory.rescaled.view;
  const ofPredicted = memory.predicted.view;
  // One for all elements: nobody keeps it.
  const element = {
    size: 0,
    magnitude: 0,
    scatter: 0,
    moved: 0,
    accumulated: 0,
    rescaled: 0,
    underflow: 0,
  } satisfies ElementTerms;
  for (let c = 0; c < vDim; c++) {
    const at = local * vDim + c;
    const inMemory = local * memory.vStride + c;
    const exact = exactOut.values[row * vDim + c];
    const size = Math.abs(exact) * scale;
    const squares = squaresOf[inMemory] * share;
    const variance = squares - size * size;
    element.size = size;
    element.magnitude = exactOut.magnitude[row * vDim + c] * scale;
    // The subtraction cancels, up to an error of fp64.
    element.scatter = Math.sqrt(Math.max(0, variance) + size * size * 2 ** -40);
    element.moved = ofMoved[inMemory] * share;
    element.accumulated = ofAccumulated[inMemory] * share;
    element.rescaled = ofRescaled[inMemory] * share;
    element.underflow = terms.lost * (largestValue * scale + size);
    // Sums are not yet divided by the row sum: on the way they may leave their range.
    const overflows = columnLargest[c] * reach >= arithmetic.largestSum;
    const factor = overflows ? Infinity : inflation / scale;
    let sum = 0;
    for (const { firstOrder, bounds } of ofElements) {
      const bound = scaled(firstOrder(element), factor);
      bounds[at] = bound;
      sum += bound;
    }
    // Weights beyond fp64 have no bound, nor known roundings, whose products with zeros are no numbers.
    const predicted = inflation === Infinity ? 0 : (ofPredicted[inMemory] * share) / scale;
    // The nearest number cannot be farther than the exact output's.
    const distance = direction === 'nearest' ? distanceToFormat(outputFormat, exact) : Infinity;
    const half =
      sum === Infinity
        ? Infinity
        : Math.min(outputRounding(outputFormat, exact, sum, direction), distance + sum);
    const radius = exactOut.radius[row * vDim + c];
    out.techniques['output-round'][at] = half;
    out.total[at] = sum + half + radius;
    const systematic =
      typicalWeights * element.scatter +
      // Σ b|v| for biases b of at most w each, by Cauchy and Schwarz.
      Math.sqrt(errors.subnormalBias * squares) +
      element.accumulated +
      element.rescaled +
      (keys * anyOrder + errors.rowSum + errors.rescaledSum + finish.normalise + ofRounded) * size +
      (dropout?.factor ?? 0) * element.magnitude +
      2 * element.underflow +
      sums +
      underflow.sums;
    out.systematic[at] = scaled(systematic, factor) + radius;
    const random =
      memory.spread.view[inMemory] * share ** 2 +
      errors.exponentialVariance * size * size +
      keys * (anyOrder * element.magnitude) ** 2 +
      (arithmetic.partials * element.magnitude) ** 2;
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
