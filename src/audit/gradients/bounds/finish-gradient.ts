import type { Gradient } from '../../../../oracles/index.js';
import { formats, unitRoundoff, type FormatName } from '../../../formats/index.js';
import {
  distanceToFormat,
  outputRounding,
  roundingSpread,
  sureDeviations,
} from '../../bounds/index.js';
import { addShare, techniquePlaces } from './gradient-techniques.js';
import type { GradientTechniqueBound } from './group-bounds.js';
import { mostOtherUnits } from './pairs/pair-sums.js';
import type { PairArithmetic, SumErrors } from './pair-arithmetic.js';

/** A factor that covers, many times over, what fp64 leaves uncertain in all of this. */
export const up = 1 + 2 ** -12;

/** fp32 sums beyond this may leave their range on the way. */
const largestSum = 2 ** 120;

/** Errors of an element before it is rounded. The object is used again from element to element. */
export interface ElementErrors {
  /** The shift by the stored forward, signed. */
  shift: number;
  /** Errors of the pairs that it is a sum over: all techniques together at worst, and the variance without the known part. */
  pairs: number;
  pairVariance: number;
  /** The known part of the roundings of pairs, signed, and the technique place that it belongs to. */
  known: number;
  readonly knownOf: number;
  /** The known part where no head's share is stored, if one may be: the larger of both counts. */
  unstored: number;
  /** The known part by each of the other factors; where a head's share may be stored, the same once more for shares that are not. */
  readonly byOthers: Float64Array;
  /** The magnitude of the sum: its terms with their errors; and the number of terms that may err alike. */
  magnitude: number;
  /** The mean square of its partial sums; Infinity where nothing but the magnitude is known. */
  partials: number;
  readonly alike: number;
  /** Errors at worst, and variances, of techniques that are not of pairs. */
  lseInput: number;
  lseVariance: number;
  delta: number;
  deltaVariance: number;
  groupSum: number;
  groupVariance: number;
  /** The part that does not average out, without the sum's and the scale's. */
  systematic: number;
  /** The largest total of numbers that underflow. */
  floor: number;
}

/** An element without errors. */
export function noErrors(of: Pick<ElementErrors, 'knownOf' | 'alike'>): ElementErrors {
  return {
    ...of,
    shift: 0,
    pairs: 0,
    pairVariance: 0,
    known: 0,
    unstored: 0,
    byOthers: new Float64Array(2 * mostOtherUnits + 1),
    magnitude: 0,
    partials: Infinity,
    lseInput: 0,
    lseVariance: 0,
    delta: 0,
    deltaVariance: 0,
    groupSum: 0,
    groupVariance: 0,
    systematic: 0,
    floor: 0,
  };
}

/**
 * Makes a function that writes the bound of element `column` of a row: `accumulate`, `scale` and `output-round`, Theorems 8
 * and 9.
 * @param sum errors of any sum of the gradient
 * @param growth the factor by which storing a head's share may enlarge errors before it
 */
export function createFinish(
  { elementwise, elementwiseVariance }: PairArithmetic,
  format: FormatName,
  { sum, growth }: { readonly sum: SumErrors; readonly growth: number },
) {
  const table = formats[format];
  // A number halfway to the next one beyond the largest becomes infinite.
  const infinite = table.maxFinite * (1 + unitRoundoff(table) / 2);
  const { lseInput, delta, accumulate, groupSum, scale, outputRound } = techniquePlaces;
  const grown = growth * up;

  return function finishElement(
    bound: GradientTechniqueBound,
    row: number,
    at: number,
    { values, radius }: Gradient,
    errors: ElementErrors,
  ): void {
    const { techniques } = bound;
    const { shift, magnitude, known, unstored } = errors;
    const value = values[at] + shift;
    const size = Math.abs(value);
    const ofLse = grown * errors.lseInput;
    const ofDelta = grown * errors.delta;
    const ofSum = grown * sum.worst * magnitude;
    const ofGroup = grown * errors.groupSum;
    const ofScale = up * (3 * elementwise * size + errors.floor);
    const partials = Math.min(errors.partials, ((magnitude + size) / 2) ** 2);
    const sumVariance = errors.alike * sum.walk * sum.walk * partials;
    const knownSquare = Math.max(known * known, unstored * unstored);
    const scaleVariance = elementwiseVariance * size * size;
    const worst = grown * errors.pairs + ofLse + ofDelta + ofSum + ofGroup + ofScale + radius[at];
    const variance =
      errors.pairVariance +
      knownSquare +
      errors.lseVariance +
      errors.deltaVariance +
      sumVariance +
      errors.groupVariance +
      scaleVariance;
    addShare(techniques, row, errors.knownOf, 0, knownSquare);
    addShare(techniques, row, lseInput, ofLse, errors.lseVariance);
    addShare(techniques, row, delta, ofDelta, errors.deltaVariance);
    addShare(techniques, row, accumulate, ofSum, sumVariance);
    addShare(techniques, row, groupSum, ofGroup, errors.groupVariance);
    addShare(techniques, row, scale, ofScale, scaleVariance);
    bound.shift[at] = shift;
    bound.operands[at] = known;
    bound.byOthers.forEach((of, k) => (of[at] = errors.byOthers[k]));
    const most = size + worst;
    if (!(most < infinite && (format === 'fp64' || most < largestSum))) {
      bound.total[at] = Infinity;
      bound.systematic[at] = Infinity;
      bound.deviation[at] = Infinity;
      addShare(techniques, row, outputRound, Infinity, Infinity);
      if (!Number.isFinite(shift)) bound.shift[at] = 0;
      bound.operands[at] = 0;
      for (const of of bound.byOthers) of[at] = 0;
      return;
    }
    const half = Math.min(
      outputRounding(format, value, worst),
      distanceToFormat(format, value) + worst,
    );
    bound.total[at] = worst + half;
    const typical =
      errors.systematic + (sum.toZero + elementwise / 2) * size + errors.floor + radius[at];
    const systematic = Math.min(typical, worst);
    const rounded = roundingSpread(format, value, {
      predicted: 0,
      noise: Math.sqrt(variance),
      systematic,
    });
    bound.systematic[at] = systematic + rounded.systematic;
    bound.known[at] = rounded.known ?? 0;
    const reach = sureDeviations * Math.sqrt(variance) + systematic;
    const isNear = rounded.known === null && reach < outputRounding(format, value, 0);
    bound.reach[at] = isNear ? reach : 0;
    const ofRounding = rounded.variance + bound.known[at] ** 2;
    bound.deviation[at] = Math.sqrt(variance + ofRounding);
    addShare(techniques, row, outputRound, half, ofRounding);
  };
}
