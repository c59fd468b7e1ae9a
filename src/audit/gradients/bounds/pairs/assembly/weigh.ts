// AssemblyScript: P and dP of pairs with their errors. Its laws are the comments of ../weighed-pairs.ts and Theorem 6 of
// docs/theory/bounds-backward.md.

import { Known, number, ofRow, PairRules, PairTile, Row, square, Weighed, write } from './memory';

/** Exponents beyond this are as good as infinite. */
const largestExponent: f64 = 700;

/** The number of products and additions of a dot product for which an underflow counts; head dimensions are far below 2^16. */
const mostProducts: f64 = 65536;

/** e^x as the host has it. */
// @inline
function exponential(x: f64): f64 {
  return JSMath.exp(min<f64>(x, largestExponent));
}

/** The mean square of the partial sums of products: the known one, but at most the one that sizes give. */
// @inline
function meanSquare(tile: PairTile, block: i32, at: usize, most: f64, factor: f64): f64 {
  const ofSizes = square(most);
  return tile.hasPartials
    ? min<f64>(ofSizes, factor * factor * number(tile.known, block, at))
    : ofSizes;
}

/** `p-recompute`: P and the softcap's slope with their errors. */
// @inline
function weighScore(
  rules: PairRules,
  tile: PairTile,
  at: usize,
  denominator: f64,
  shifted: f64,
): void {
  const known = tile.known;
  const weighed = tile.weighed;
  const elementwise = rules.elementwise;
  const isApart = rules.tellsApart && !rules.isCapped;
  const dot = number(known, Known.dot, at);
  const raw = rules.scale * dot;
  const rawSize = abs<f64>(raw);
  const size = abs<f64>(rules.scale) * number(known, Known.dotSize, at);
  let score = raw;
  let worst = rules.scoresWorst * size + rules.operations * rawSize;
  // The scale times log2 e is rounded once for all.
  let typical = isApart ? 0 : (rules.scoresToZero + elementwise / 2) * rawSize;
  const partials = meanSquare(tile, Known.dotPartials, at, (size + rawSize) / 2, rules.scale);
  let variance =
    rules.scoresWalk * rules.scoresWalk * partials + rules.operationVariance * raw * raw;
  // The part of a sum that is cut off is anything from zero to twice the mean.
  if (isApart) variance += square(rules.scoresToZero * rawSize) / 12;
  if (rules.isCapped) {
    const cap = rules.softcap;
    const z = JSMath.tanh(raw / cap);
    const ofZ = abs<f64>(z);
    const slope = 1 - z * z;
    const ofSlope = worst / cap + rules.tanh * ofZ + rules.tanhFloor;
    const ofFloor = (rules.tanhFloor * rules.tanhFloor) / 3;
    write(weighed, Weighed.slope, at, slope);
    const slopeError = 2 * ofZ * ofSlope + ofSlope * ofSlope + 4 * elementwise;
    write(weighed, Weighed.slopeError, at, min<f64>(slopeError, 2));
    const typicalSlope = 2 * ofZ * (typical / cap + rules.typicalTanh * ofZ) + elementwise;
    write(weighed, Weighed.typicalSlope, at, typicalSlope);
    const ofTanh = variance / square(cap) + rules.tanhVariance * z * z + ofFloor;
    write(weighed, Weighed.slopeVariance, at, 4 * z * z * ofTanh + rules.elementwiseVariance);
    score = cap * z;
    const steepest = min<f64>(1, slope + worst / cap);
    const capped = abs<f64>(score);
    worst = steepest * worst + rules.tanh * capped + rules.tanhFloor * cap;
    typical = steepest * typical + rules.typicalTanh * capped;
    variance =
      square(steepest) * variance + rules.tanhVariance * score * score + ofFloor * cap * cap;
  }
  const scoreSize = abs<f64>(score);
  const addend = tile.hasAddends ? number(known, Known.addend, at) : 0;
  const addendSize = tile.hasAddends ? number(known, Known.addendSize, at) : 0;
  const exponent = score + addend - denominator;
  worst += rules.operations * (scoreSize + 2 * addendSize) + 2 * elementwise * abs<f64>(exponent);
  typical += elementwise * ((isApart ? 0 : scoreSize / 2) + addendSize);
  variance +=
    rules.operationVariance * (score * score + 4 * addendSize * addendSize) +
    rules.elementwiseVariance * exponent * exponent;
  const weight = exponential(exponent) * shifted;
  write(weighed, Weighed.weight, at, weight);
  const floor = 2 * rules.underflow;
  const ofExponential = rules.exponential;
  let error: f64 = 0;
  let typicalWeight: f64 = 0;
  let commonWeight: f64 = 0;
  let weightVariance: f64 = 0;
  if (worst < 1) {
    // e^x − 1 ≤ x + x² there.
    error = weight * worst * (1 + worst) * (1 + ofExponential) + weight * ofExponential + floor;
    typicalWeight = min<f64>(weight * typical * (1 + typical) + floor, error);
    commonWeight = isApart ? weight * rules.commonScores * raw : 0;
    weightVariance =
      weight * weight * (min<f64>(variance, worst * worst) + ofExponential * ofExponential);
  } else {
    const grown = exponential(exponent + worst) * shifted;
    error = grown * (1 + ofExponential) + weight * ofExponential + floor;
    typicalWeight = error;
  }
  const largest = max<f64>(max<f64>(abs<f64>(dot), rawSize), scoreSize + addendSize) + worst;
  if (!(largest < rules.largestScore)) error = Infinity;
  write(weighed, Weighed.weightError, at, error);
  write(weighed, Weighed.typicalWeight, at, typicalWeight);
  write(weighed, Weighed.commonWeight, at, commonWeight);
  write(weighed, Weighed.weightVariance, at, weightVariance);
}

/** `dp-accumulate`: dP with its errors. */
// @inline
function weighDerivative(rules: PairRules, tile: PairTile, at: usize): void {
  const known = tile.known;
  const weighed = tile.weighed;
  const isApart = rules.tellsApart;
  const factor = tile.hasFactors ? number(known, Known.factor, at) : 1;
  const product = number(known, Known.product, at);
  const derivative = product * factor;
  const size = abs<f64>(derivative);
  const sizes = number(known, Known.productSize, at) * factor;
  const floor = rules.underflow * mostProducts;
  const error =
    (rules.productsWorst * sizes + (rules.dropout + rules.productRounding) * size) * 1.00390625 +
    floor;
  write(weighed, Weighed.derivative, at, derivative);
  const isWithin = max<f64>(abs<f64>(product), size) + error < rules.largestProduct;
  write(weighed, Weighed.derivativeError, at, isWithin ? error : Infinity);
  const typical = isApart ? floor : (rules.productsToZero + rules.dropout) * size + floor;
  write(weighed, Weighed.typicalDerivative, at, typical);
  write(weighed, Weighed.commonDerivative, at, isApart ? rules.commonProducts * derivative : 0);
  const rounded = rules.productRounding * size;
  const partials = meanSquare(tile, Known.productPartials, at, (sizes + size) / 2, factor);
  write(
    weighed,
    Weighed.derivativeVariance,
    at,
    rules.productsWalk * rules.productsWalk * partials +
      (isApart ? square(rules.productsToZero * size) / 12 : 0) +
      rules.meanRounding * rounded * rounded,
  );
}

/** `p-recompute` and `dp-accumulate` of the pairs of a tile that rows see. */
export function weighPairs(rules: PairRules, tile: PairTile, segments: i32): void {
  for (let s = 0; s < segments; s++) {
    const segment = tile.segments + <usize>(s * 12);
    const i = load<i32>(segment);
    const end = (<usize>(i * 64 + load<i32>(segment, 8))) << 3;
    const denominator = ofRow(tile, i, Row.denominator);
    const shifted = 1 + ofRow(tile, i, Row.weightShift);
    for (let at = (<usize>(i * 64 + load<i32>(segment, 4))) << 3; at < end; at += 8) {
      weighScore(rules, tile, at, denominator, shifted);
      weighDerivative(rules, tile, at);
    }
  }
}
