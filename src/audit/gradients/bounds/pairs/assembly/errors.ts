// AssemblyScript: the errors of P and dT of pairs, technique by technique. Its laws are those of Theorem 7 of
// docs/theory/bounds-backward.md.

import {
  Errors,
  Known,
  number,
  ofRow,
  Operand,
  PairRules,
  PairTile,
  Place,
  Rounding,
  Row,
  square,
  Weighed,
  write,
} from './memory';
import { roundOperands } from './round';

/** Rounds the weights of places that a row sees as an operand. */
// @inline
function roundWeights(
  operand: Operand,
  tile: PairTile,
  shared: f64,
  begin: usize,
  end: usize,
): void {
  for (let at = begin; at < end; at += 8) {
    const weight = number(tile.weighed, Weighed.weight, at);
    write(tile.roundings, Rounding.numbers, at, weight);
    const error = number(tile.weighed, Weighed.weightError, at) * (1 + shared) + shared * weight;
    write(tile.roundings, Rounding.errors, at, error);
  }
  roundOperands(operand, tile.roundings, begin, end);
}

/** `lse-input`, `p-recompute`, `p-round`: P as dV has it. */
export function errWeights(rules: PairRules, tile: PairTile, segments: i32): void {
  const weighed = tile.weighed;
  const roundings = tile.roundings;
  const errors = tile.errors;
  for (let s = 0; s < segments; s++) {
    const segment = tile.segments + <usize>(s * 12);
    const i = load<i32>(segment);
    const begin = (<usize>(i * 64 + load<i32>(segment, 4))) << 3;
    const end = (<usize>(i * 64 + load<i32>(segment, 8))) << 3;
    const shared = ofRow(tile, i, Row.weight);
    const sharedVariance = ofRow(tile, i, Row.weightVariance);
    const common = ofRow(tile, i, Row.commonWeight);
    const shift = ofRow(tile, i, Row.weightShift);
    roundWeights(rules.p, tile, shared, begin, end);
    for (let at = begin; at < end; at += 8) {
      const weight = number(weighed, Weighed.weight, at);
      const factor = tile.hasFactors ? number(tile.known, Known.factor, at) : 1;
      const kept = factor * (1 + rules.dropout);
      const ofFactor = rules.dropout * weight * factor;
      const alone = number(weighed, Weighed.weightError, at) * (1 + shared);
      const rounded = number(roundings, Rounding.worst, at);
      write(errors, Errors.worst + Place.lseInput, at, shared * weight * kept);
      write(errors, Errors.worst + Place.pRecompute, at, alone * kept + ofFactor);
      write(errors, Errors.worst + Place.pRound, at, rounded * kept);
      const ofRow = sharedVariance * weight * weight * factor * factor;
      const own = number(weighed, Weighed.weightVariance, at) * factor * factor;
      const ofRounding = number(roundings, Rounding.variance, at) * factor * factor;
      write(errors, Errors.variance + Place.lseInput, at, ofRow);
      write(errors, Errors.variance + Place.pRecompute, at, own);
      write(errors, Errors.variance + Place.pRound, at, ofRounding);
      write(errors, Errors.value, at, weight * factor);
      write(errors, Errors.unshifted, at, (weight * factor) / (1 + shift));
      write(errors, Errors.sloped, at, 0);
      write(errors, Errors.known, at, number(roundings, Rounding.known, at) * factor);
      for (let k = 0; k < tile.others; k++) {
        const other = number(roundings, Rounding.byOthers + k, at) * factor;
        write(errors, Errors.byOthers + k, at, other);
      }
      if (tile.isOfSums) {
        write(errors, Errors.ofWeights, at, common * weight * factor);
        write(errors, Errors.ofScores, at, number(weighed, Weighed.commonWeight, at) * factor);
        write(errors, Errors.ofProducts, at, 0);
        write(errors, Errors.ofMeans, at, 0);
      }
      const typical = number(weighed, Weighed.typicalWeight, at) * factor + ofFactor;
      write(errors, Errors.systematic, at, typical);
    }
  }
}

/** Everything about dT before it is rounded, of places that a row sees. */
function errUnrounded(rules: PairRules, tile: PairTile, i: i32, begin: usize, end: usize): void {
  const weighed = tile.weighed;
  const errors = tile.errors;
  const elementwise = rules.elementwise;
  const elementwiseVariance = rules.elementwiseVariance;
  const underflow = rules.underflow;
  const ofWritten = rules.meanRounding * rules.weightRounding * rules.weightRounding;
  const mean = ofRow(tile, i, Row.mean);
  const meanShift = ofRow(tile, i, Row.meanShift);
  const worstMean = ofRow(tile, i, Row.worstMean);
  const meanVariance = ofRow(tile, i, Row.meanVariance);
  const shared = ofRow(tile, i, Row.weight);
  const sharedVariance = ofRow(tile, i, Row.weightVariance);
  const commonWeight = ofRow(tile, i, Row.commonWeight);
  const commonMean = ofRow(tile, i, Row.commonMean);
  const unshifted = 1 + ofRow(tile, i, Row.weightShift);
  const grown = 1 + shared;
  // A sum of dP may begin with −D, and every addition to it rounds.
  const begun = rules.productsWorst * abs<f64>(mean + meanShift);
  const begunVariance = square(rules.productsWalk * (mean + meanShift));
  // Where dS is made of a P that is written, it is of the same number.
  const isWritten = rules.weights.isRounded;
  if (isWritten) roundWeights(rules.weights, tile, shared, begin, end);
  for (let at = begin; at < end; at += 8) {
    const weight = number(weighed, Weighed.weight, at);
    const slope = number(weighed, Weighed.slope, at);
    const slopeError = number(weighed, Weighed.slopeError, at);
    const ofWeight = number(weighed, Weighed.weightError, at);
    const exact = number(weighed, Weighed.derivative, at) - mean;
    const shifted = exact - meanShift;
    const size = abs<f64>(shifted);
    const ofMean = elementwise * (size + abs<f64>(mean));
    const ofDerivative = number(weighed, Weighed.derivativeError, at) + begun;
    const ofRounding = isWritten ? number(tile.roundings, Rounding.worst, at) : 0;
    const most = weight + ofWeight + ofRounding;
    const reach = size + ofDerivative + ofMean + worstMean;
    const sloped = weight * slope;
    const dT = sloped * shifted;
    const steepest = (slope + slopeError) * grown;
    const ofWeights = (steepest * ofWeight + grown * slopeError * most) * reach;
    write(errors, Errors.worst + Place.lseInput, at, shared * abs<f64>(dT));
    write(errors, Errors.worst + Place.delta, at, worstMean * sloped * grown);
    write(errors, Errors.worst + Place.pRecompute, at, ofWeights);
    write(errors, Errors.worst + Place.pRound, at, steepest * ofRounding * reach);
    write(errors, Errors.worst + Place.dpAccumulate, at, steepest * weight * ofDerivative);
    write(
      errors,
      Errors.worst + Place.dsRound,
      at,
      steepest * (weight * ofMean + 3 * elementwise * most * reach) +
        grown * 3 * underflow * (1 + reach),
    );
    const squared = size * size;
    const steep = sloped * sloped;
    write(errors, Errors.variance + Place.lseInput, at, sharedVariance * dT * dT);
    write(errors, Errors.variance + Place.delta, at, meanVariance * steep);
    write(
      errors,
      Errors.variance + Place.pRecompute,
      at,
      (slope * slope * number(weighed, Weighed.weightVariance, at) +
        number(weighed, Weighed.slopeVariance, at) * weight * weight) *
        squared,
    );
    write(errors, Errors.variance + Place.pRound, at, ofWritten * dT * dT);
    const ofProducts = number(weighed, Weighed.derivativeVariance, at) + begunVariance;
    write(errors, Errors.variance + Place.dpAccumulate, at, steep * ofProducts);
    write(
      errors,
      Errors.variance + Place.dsRound,
      at,
      elementwiseVariance * (steep * (squared + mean * mean) + 2 * dT * dT),
    );
    write(errors, Errors.value, at, dT);
    if (tile.isOfSums) {
      write(errors, Errors.ofWeights, at, commonWeight * dT);
      const ofScores = slope * number(weighed, Weighed.commonWeight, at) * shifted;
      write(errors, Errors.ofScores, at, ofScores);
      write(errors, Errors.ofProducts, at, sloped * number(weighed, Weighed.commonDerivative, at));
      write(errors, Errors.ofMeans, at, sloped * commonMean);
    }
    write(errors, Errors.sloped, at, sloped);
    write(errors, Errors.unshifted, at, (weight / unshifted) * slope * exact);
    write(
      errors,
      Errors.systematic,
      at,
      (slope * number(weighed, Weighed.typicalWeight, at) +
        number(weighed, Weighed.typicalSlope, at) * weight) *
        size +
        sloped * number(weighed, Weighed.typicalDerivative, at) +
        3 * underflow,
    );
  }
}

/** dT: everything about it, and then `ds-round`. */
export function errDerivatives(rules: PairRules, tile: PairTile, segments: i32): void {
  const errors = tile.errors;
  const roundings = tile.roundings;
  for (let s = 0; s < segments; s++) {
    const segment = tile.segments + <usize>(s * 12);
    const i = load<i32>(segment);
    const begin = (<usize>(i * 64 + load<i32>(segment, 4))) << 3;
    const end = (<usize>(i * 64 + load<i32>(segment, 8))) << 3;
    errUnrounded(rules, tile, i, begin, end);
    for (let at = begin; at < end; at += 8) {
      write(roundings, Rounding.numbers, at, number(errors, Errors.value, at));
      let sum = number(errors, Errors.worst, at);
      for (let place = 1; place <= Place.dsRound; place++)
        sum += number(errors, Errors.worst + place, at);
      write(roundings, Rounding.errors, at, sum);
    }
    roundOperands(rules.ds, roundings, begin, end);
    for (let at = begin; at < end; at += 8) {
      const worst = number(errors, Errors.worst + Place.dsRound, at);
      const variance = number(errors, Errors.variance + Place.dsRound, at);
      const rounded = number(roundings, Rounding.worst, at);
      const spread = number(roundings, Rounding.variance, at);
      write(errors, Errors.worst + Place.dsRound, at, worst + rounded);
      write(errors, Errors.variance + Place.dsRound, at, variance + spread);
      write(errors, Errors.known, at, number(roundings, Rounding.known, at));
      for (let k = 0; k < tile.others; k++)
        write(errors, Errors.byOthers + k, at, number(roundings, Rounding.byOthers + k, at));
    }
  }
}
