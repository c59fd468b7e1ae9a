import type { KeyRange } from '../../../problem/index.js';
import { tileRows } from '../../bounds/index.js';
import { pairPlaces, techniquePlaces } from './gradient-techniques.js';
import { mostOtherUnits } from './pair-sums.js';
import { meanRounding, type OperandRounding, type PairArithmetic } from './pair-arithmetic.js';
import { emptyRoundings, roundOperands, type Roundings } from './round-operand.js';
import type { KnownPairs, RowErrors, WeighedPairs } from './weigh-pairs.js';

/** The pairs of a tile that are weighed. */
export interface WeighedTile {
  readonly known: KnownPairs;
  readonly weighed: WeighedPairs;
  readonly rows: readonly RowErrors[];
  /** The keys that each row sees, within the tile. */
  readonly ranges: readonly (readonly KeyRange[])[];
}

/** Errors of one number for each pair of a tile, [64 × 64]; meaningless where a row does not see a key. */
export interface PairErrors {
  /** Errors by technique: at worst and their variances, of rows that err independently. */
  readonly worst: readonly Float64Array[];
  readonly variance: readonly Float64Array[];
  /** dT, or P as dV has it; the same without the row's shift; and P·slope, or P. */
  readonly value: Float64Array;
  readonly unshifted: Float64Array;
  readonly sloped: Float64Array;
  /**
   * The rounding that is known, the one that other factors would give, and the part that does not average out, without the row's.
   */
  readonly known: Float64Array;
  readonly byOthers: readonly Float64Array[];
  readonly systematic: Float64Array;
  /**
   * Its error, signed, where all scores of the forward pass, all scores, all dP or all D are off by the same
   * share of themselves.
   */
  readonly ofWeights: Float64Array;
  readonly ofScores: Float64Array;
  readonly ofProducts: Float64Array;
  readonly ofMeans: Float64Array;
  /** Roundings of the numbers that were rounded last. */
  readonly roundings: Roundings;
}

/** Room for a tile's errors. */
export function emptyPairErrors(): PairErrors {
  const numbers = () => new Float64Array(tileRows * tileRows);
  const places = () => Array.from({ length: pairPlaces }, numbers);
  return {
    worst: places(),
    variance: places(),
    value: numbers(),
    unshifted: numbers(),
    sloped: numbers(),
    known: numbers(),
    byOthers: Array.from({ length: mostOtherUnits }, numbers),
    systematic: numbers(),
    ofWeights: numbers(),
    ofScores: numbers(),
    ofProducts: numbers(),
    ofMeans: numbers(),
    roundings: emptyRoundings(tileRows * tileRows),
  };
}

const { lseInput, delta, pRecompute, pRound, dpAccumulate, dsRound } = techniquePlaces;

/** Rounds the weights of a tile as an operand. */
function roundWeights(rounding: OperandRounding, tile: WeighedTile, roundings: Roundings): void {
  const { weight: weights, weightError } = tile.weighed;
  const { numbers, errors } = roundings;
  for (let i = 0; i < tile.rows.length; i++) {
    const ofRow = tile.rows[i].weight;
    for (const { begin, end } of tile.ranges[i]) {
      const [first, last] = [i * tileRows + begin, i * tileRows + end];
      for (let at = first; at < last; at++) {
        numbers[at] = weights[at];
        errors[at] = weightError[at] * (1 + ofRow) + ofRow * weights[at];
      }
      roundOperands(rounding, roundings, first, last);
    }
  }
}

/** `lse-input`, `p-recompute`, `p-round`: P as dV has it. */
export function errWeights(arithmetic: PairArithmetic, tile: WeighedTile, to: PairErrors): void {
  const { dropout, p } = arithmetic;
  const { weighed, rows, ranges } = tile;
  const { factor: factors } = tile.known;
  const { worst: rounded, known, variance, byOthers } = to.roundings;
  roundWeights(p, tile, to.roundings);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    for (const { begin, end } of ranges[i])
      for (let at = i * tileRows + begin; at < i * tileRows + end; at++) {
        const weight = weighed.weight[at];
        const factor = factors === null ? 1 : factors[at];
        const kept = factor * (1 + dropout);
        const ofFactor = dropout * weight * factor;
        const ofRow = row.weight * weight;
        const alone = weighed.weightError[at] * (1 + row.weight);
        to.worst[lseInput][at] = ofRow * kept;
        to.variance[lseInput][at] = row.weightVariance * weight * weight * factor * factor;
        to.worst[pRecompute][at] = alone * kept + ofFactor;
        to.worst[pRound][at] = rounded[at] * kept;
        to.variance[pRecompute][at] = weighed.weightVariance[at] * factor * factor;
        to.variance[pRound][at] = variance[at] * factor * factor;
        to.value[at] = weight * factor;
        to.unshifted[at] = (weight * factor) / (1 + row.weightShift);
        to.sloped[at] = 0;
        to.known[at] = known[at] * factor;
        for (let k = 0; k < mostOtherUnits; k++) to.byOthers[k][at] = byOthers[k][at] * factor;
        to.ofWeights[at] = row.commonWeight * weight * factor;
        to.ofScores[at] = weighed.commonWeight[at] * factor;
        to.ofProducts[at] = 0;
        to.ofMeans[at] = 0;
        to.systematic[at] = weighed.typicalWeight[at] * factor + ofFactor;
      }
  }
}

/** Everything about dT before it is rounded: Theorem 7. */
function errUnrounded(arithmetic: PairArithmetic, tile: WeighedTile, to: PairErrors): void {
  const { elementwise, elementwiseVariance, underflow, products, weightRounding } = arithmetic;
  const { weighed, rows, ranges } = tile;
  const { worst, variance } = to;
  const ofWritten = meanRounding * weightRounding * weightRounding;
  // Where dS is made of a P that is written, it is of the same number.
  const { worst: written } = to.roundings;
  roundWeights(arithmetic.weights, tile, to.roundings);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    const { mean, meanShift, worstMean } = row;
    const grown = 1 + row.weight;
    // A sum of dP may begin with −D, and every addition to it rounds.
    const begun = products.worst * Math.abs(mean + meanShift);
    const begunVariance = (products.walk * (mean + meanShift)) ** 2;
    for (const { begin, end } of ranges[i])
      for (let at = i * tileRows + begin; at < i * tileRows + end; at++) {
        const weight = weighed.weight[at];
        const slope = weighed.slope[at];
        const slopeError = weighed.slopeError[at];
        const ofWeight = weighed.weightError[at];
        const exact = weighed.derivative[at] - mean;
        const shifted = exact - meanShift;
        const size = Math.abs(shifted);
        const ofMean = elementwise * (size + Math.abs(mean));
        const ofDerivative = weighed.derivativeError[at] + begun;
        const ofRounding = written[at];
        const most = weight + ofWeight + ofRounding;
        const reach = size + ofDerivative + ofMean + worstMean;
        const sloped = weight * slope;
        const dT = sloped * shifted;
        const steepest = (slope + slopeError) * grown;
        worst[lseInput][at] = row.weight * Math.abs(dT);
        worst[delta][at] = worstMean * sloped * grown;
        worst[pRecompute][at] = (steepest * ofWeight + grown * slopeError * most) * reach;
        worst[pRound][at] = steepest * ofRounding * reach;
        worst[dpAccumulate][at] = steepest * weight * ofDerivative;
        worst[dsRound][at] =
          steepest * (weight * ofMean + 3 * elementwise * most * reach) +
          grown * 3 * underflow * (1 + reach);
        const squared = size * size;
        const steep = sloped * sloped;
        variance[lseInput][at] = row.weightVariance * dT * dT;
        variance[delta][at] = row.meanVariance * steep;
        variance[pRecompute][at] =
          (slope * slope * weighed.weightVariance[at] +
            weighed.slopeVariance[at] * weight * weight) *
          squared;
        variance[pRound][at] = ofWritten * dT * dT;
        variance[dpAccumulate][at] = steep * (weighed.derivativeVariance[at] + begunVariance);
        variance[dsRound][at] =
          elementwiseVariance * (steep * (squared + mean * mean) + 2 * dT * dT);
        to.value[at] = dT;
        to.ofWeights[at] = row.commonWeight * dT;
        to.ofScores[at] = slope * weighed.commonWeight[at] * shifted;
        to.ofProducts[at] = sloped * weighed.commonDerivative[at];
        to.ofMeans[at] = sloped * row.commonMean;
        to.sloped[at] = sloped;
        to.unshifted[at] = (weight / (1 + row.weightShift)) * slope * exact;
        to.systematic[at] =
          (slope * weighed.typicalWeight[at] + weighed.typicalSlope[at] * weight) * size +
          sloped * weighed.typicalDerivative[at] +
          3 * underflow;
      }
  }
}

/** dT: everything about it, and then `ds-round`. */
export function errDerivatives(
  arithmetic: PairArithmetic,
  tile: WeighedTile,
  to: PairErrors,
): void {
  errUnrounded(arithmetic, tile, to);
  const { worst, variance, value, known, byOthers, roundings } = to;
  for (let i = 0; i < tile.rows.length; i++)
    for (const { begin, end } of tile.ranges[i]) {
      const [first, last] = [i * tileRows + begin, i * tileRows + end];
      for (let at = first; at < last; at++) {
        roundings.numbers[at] = value[at];
        roundings.errors[at] =
          worst[0][at] + worst[1][at] + worst[2][at] + worst[3][at] + worst[4][at] + worst[5][at];
      }
      roundOperands(arithmetic.ds, roundings, first, last);
      for (let at = first; at < last; at++) {
        worst[dsRound][at] += roundings.worst[at];
        variance[dsRound][at] += roundings.variance[at];
        known[at] = roundings.known[at];
        for (let k = 0; k < mostOtherUnits; k++) byOthers[k][at] = roundings.byOthers[k][at];
      }
    }
}
