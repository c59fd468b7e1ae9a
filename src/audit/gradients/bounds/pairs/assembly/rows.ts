// AssemblyScript: sums over the keys of a row that its errors follow from. Its laws are the comments of ../row-sums.ts.

import { number, ofRow, ofSide, PairTile, Row, Side, square, Weighed } from './memory';

/** Sums of a row, in fp64: `RowSums`. */
enum Sum {
  size,
  squares,
  errors,
  typical,
  variance,
  scatter,
  typicalScatter,
  scatterVariance,
  weightErrors,
  typicalWeights,
  commonErrors,
  commonScatter,
  commonWeights,
  product,
  largestProduct,
  weightVariance,
  alikeAdditions,
  squaredAdditions,
}

/** Bytes from a row's sums to the next. */
const sumBytes: usize = 144;

/** The number of equal terms of a sum from which on they err as one, and not by chance. */
const manyAlike: f64 = 16;

// @inline
function add(sums: usize, field: i32, x: f64): void {
  const at = sums + ((<usize>field) << 3);
  store<f64>(at, load<f64>(at) + x);
}

/** Adds the pairs of a tile that is weighed to the sums of their rows. */
export function addToRows(tile: PairTile, segments: i32): void {
  const weighed = tile.weighed;
  for (let s = 0; s < segments; s++) {
    const segment = tile.segments + <usize>(s * 12);
    const i = load<i32>(segment);
    const end = load<i32>(segment, 8);
    const mean = ofRow(tile, i, Row.mean);
    const sums = tile.rowSums + <usize>i * sumBytes;
    for (let j = load<i32>(segment, 4); j < end; j++) {
      const at = (<usize>(i * 64 + j)) << 3;
      const alikeScores = ofSide(tile.keys, Side.alikeScores, j);
      const weight = number(weighed, Weighed.weight, at);
      const weightError = number(weighed, Weighed.weightError, at);
      const derivative = number(weighed, Weighed.derivative, at);
      const derivativeError = number(weighed, Weighed.derivativeError, at);
      const typicalWeight = number(weighed, Weighed.typicalWeight, at);
      const weightVariance = number(weighed, Weighed.weightVariance, at) * alikeScores;
      const size = abs<f64>(derivative);
      const distance = abs<f64>(derivative - mean);
      const ofDerivative =
        square(weight) *
        number(weighed, Weighed.derivativeVariance, at) *
        ofSide(tile.keys, Side.alikeProducts, j);
      add(sums, Sum.size, weight * size);
      add(sums, Sum.squares, square(weight * size));
      add(sums, Sum.errors, weightError * (size + derivativeError) + weight * derivativeError);
      const typical = weight * number(weighed, Weighed.typicalDerivative, at);
      add(sums, Sum.typical, typicalWeight * size + typical);
      add(sums, Sum.variance, weightVariance * square(size) + ofDerivative);
      add(sums, Sum.scatter, weightError * distance);
      add(sums, Sum.typicalScatter, typicalWeight * distance);
      add(sums, Sum.scatterVariance, weightVariance * square(distance));
      add(sums, Sum.weightErrors, weightError);
      add(sums, Sum.typicalWeights, typicalWeight);
      add(sums, Sum.weightVariance, weightVariance);
      const commonWeight = number(weighed, Weighed.commonWeight, at);
      add(sums, Sum.commonErrors, commonWeight * derivative);
      add(sums, Sum.commonScatter, commonWeight * (derivative - mean));
      add(sums, Sum.commonWeights, commonWeight);
      add(sums, Sum.product, weight * derivative);
      const product = abs<f64>(load<f64>(sums + ((<usize>Sum.product) << 3)));
      const largest = sums + ((<usize>Sum.largestProduct) << 3);
      store<f64>(largest, max<f64>(load<f64>(largest), product));
      if (alikeScores < manyAlike) add(sums, Sum.squaredAdditions, alikeScores);
      else add(sums, Sum.alikeAdditions, 1);
    }
  }
}
