import { type KernelArithmetic, type Technique, techniques } from '../../../kernels/index.js';
import {
  exp2HardwareBound,
  exp2PolynomialBound,
  hardwareWeightError,
  polynomialWeightError,
  pRoundBound,
  roundedRowSum,
} from './weights.js';
import { distanceToFormat, normaliseBound, outputRounding, roundingSpread } from './finish.js';
import {
  anyOrderLoss,
  pvAccumulateBound,
  rescaleBound,
  rescaleWeightError,
  rowSumBound,
  rowSumOverflows,
  sumUnderflow,
} from './sums.js';
import {
  exponentWeightError,
  qkAccumulateBound,
  scaleSubtractBound,
  scoreWeightError,
  typicalScoreShare,
} from './scores.js';
import type { ElementTerms, RowErrors, RowTerms, TechniqueBound } from './technique-bound.js';
import type { AttentionReference } from '../../../oracles/index.js';
import type { BoundMemory } from './memory.js';
import type { RowPlan } from './row-plan.js';
import { errorsWithSink, type SunkRow } from './row-units.js';
import type { Bounds } from './rows-bound.js';

/** The bounds of the techniques that act before the output is rounded. */
const innerTechniques: Readonly<Record<Exclude<Technique, 'output-round'>, TechniqueBound>> = {
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

/** What fp64 leaves uncertain in all of this, many times over. */
const up = 1 + 2 ** -12;

/** A bound times a factor; nothing is known where the factor is infinite. */
function scaled(bound: number, factor: number): number {
  return factor === Infinity ? Infinity : bound * factor;
}

/** One row whose tiles have all been weighed. */
interface FinishedRow {
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

/**
 * Makes a function that puts the bounds of a row together: the techniques' bounds times what cross
 * terms and a wrong row sum may add (Theorem 1 of docs/bounds.md), and the rounding of the output.
 */
export function createFinishRow(
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  memory: BoundMemory,
  out: Bounds,
  lse: Bounds,
) {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  const { vDim, qkDim } = reference.shape;
  const { outputFormat, outputRounding: direction, underflow, exponential, finish } = arithmetic;
  const { dropout } = arithmetic;
  const typicalScores = typicalScoreShare(arithmetic.scores, qkDim);
  const anyOrder = anyOrderLoss(arithmetic.values);
  const inner = techniques.filter((name) => name !== 'output-round');

  /** What the shared weights may be off on average, all techniques together. */
  function weightsError(terms: RowTerms): number {
    return (
      scoreWeightError(terms).mean +
      innerTechniques['scale-subtract'].lse(terms) +
      hardwareWeightError(terms).mean +
      polynomialWeightError(terms).mean +
      rescaleWeightError(terms).mean
    );
  }

  function finishElements(finished: FinishedRow, terms: RowTerms, inflation: number): void {
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
    const ofElements = inner.map((name) => ({
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
    for (let c = 0; c < vDim; c++) {
      const at = local * vDim + c;
      const inMemory = local * memory.vStride + c;
      const exact = exactOut.values[row * vDim + c];
      const size = Math.abs(exact) * scale;
      const squares = squaresOf[inMemory] * share;
      const variance = squares - size * size;
      const element: ElementTerms = {
        size,
        magnitude: exactOut.magnitude[row * vDim + c] * scale,
        // The subtraction cancels, up to an error of fp64.
        scatter: Math.sqrt(Math.max(0, variance) + size * size * 2 ** -40),
        moved: ofMoved[inMemory] * share,
        accumulated: ofAccumulated[inMemory] * share,
        rescaled: ofRescaled[inMemory] * share,
        underflow: terms.lost * (largestValue * scale + size),
      };
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
        (keys * anyOrder + errors.rowSum + errors.rescaledSum + finish.normalise + ofRounded) *
          size +
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

  function finishLse({ local, row }: FinishedRow, terms: RowTerms, inflation: number): void {
    const radius = exactLse.radius[row];
    let sum = 0;
    for (const technique of inner) {
      const bound = scaled(innerTechniques[technique].lse(terms), inflation);
      lse.techniques[technique][local] = bound;
      sum += bound;
    }
    lse.techniques['output-round'][local] = 0;
    lse.total[local] = sum + radius;
    const { errors, lost } = terms;
    const ofExponential =
      lse.techniques['exp2-hardware'][local] + lse.techniques['exp2-polynomial'][local];
    const mean = Math.abs(exponential.polynomialMean) * errors.polynomialMass + 2 * lost;
    lse.systematic[local] =
      inflation === Infinity ? Infinity : sum - ofExponential + mean * inflation + radius;
    lse.known[local] = 0;
    lse.deviation[local] = scaled(Math.sqrt(errors.exponentialVariance / 2), inflation);
  }

  /** How wrong the row sum may be, all techniques together. */
  function rowSumError(terms: RowTerms): number {
    const { errors, lost } = terms;
    return (
      weightsError(terms) + errors.rowSum + errors.rescaledSum + roundedRowSum(terms) + 2 * lost
    );
  }

  /** False, with nothing done, where the errors are too large for the first order. */
  return function finishRow(finished: FinishedRow): boolean {
    const { local, row, keys, errors, plan, sunk } = finished;
    const gain = plan.blocks.reduce((most, block) => Math.max(most, block.gain[local]), 0);
    const ofKeys: RowTerms = {
      arithmetic,
      errors,
      keys,
      largestMaximum: plan.largestMaximum[local],
      finalMaximum: plan.finalMaximum[local],
      logarithm: plan.logarithm[local],
      lse: exactLse.values[row],
      lost: keys * underflow.weights * gain,
      gain,
    };
    const terms = sunk === null ? ofKeys : withSink(ofKeys, sunk, plan, local);
    const ofLse = sunk === null || sunk.isInLse ? terms : ofKeys;
    const wrong = rowSumError(terms);
    const wrongLse = ofLse === terms ? wrong : rowSumError(ofLse);
    if (!(wrong < 1 / 2 && wrongLse < 1 / 2)) return false;
    const isBounded =
      plan.overflows[local] === 0 && !rowSumOverflows(arithmetic, keys, plan.reach[local]);
    const inflation = (error: number) =>
      isBounded ? (up * (1 + errors.largest)) / (1 - error) : Infinity;
    finishElements(finished, terms, inflation(wrong));
    finishLse(finished, ofLse, inflation(wrongLse));
    return true;
  };

  /** A row relative to its whole row sum, of which a sink has a part. */
  function withSink(terms: RowTerms, sunk: SunkRow, plan: RowPlan, local: number): RowTerms {
    const gain = Math.max(terms.gain * sunk.share, sunk.gain);
    return {
      ...terms,
      errors: errorsWithSink(terms.errors, sunk, arithmetic, plan.origin[local]),
      lost: terms.keys * underflow.weights * gain,
      gain,
    };
  }
}
