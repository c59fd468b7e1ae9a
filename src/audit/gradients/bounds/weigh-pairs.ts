import type { KeyRange } from '../../../problem/index.js';
import { tileRows } from '../../bounds/index.js';
import { meanRounding, type PairArithmetic } from './pair-arithmetic.js';

/** The errors that the pairs of a row of queries share; made by `createRowErrors`, all but the first three 0 before. */
export interface RowErrors {
  /** The logarithm of the row sum, and D. */
  readonly denominator: number;
  readonly mean: number;
  /** The shifts of P (relative) and of D by the stored LSE and O, where they are known to be used. */
  readonly weightShift: number;
  readonly meanShift: number;
  /**
   * The largest relative error that all P of the row share, and the largest error of D beside that; the parts that do not average
   * out.
   */
  readonly weight: number;
  readonly typicalWeight: number;
  /** The shared error of P, signed, from an error that all scores of the forward pass share. */
  readonly commonWeight: number;
  /** The variance of the relative error that all P of the row share, beside that. */
  readonly weightVariance: number;
  readonly worstMean: number;
  readonly typicalMean: number;
  /** The error of D, signed, from an error that all D share, relative to themselves. */
  readonly commonMean: number;
  /** The variance of D's error. */
  readonly meanVariance: number;
}

/** Facts about the pairs of a tile, [64 × 64]: null for those that the problem does not have. */
export interface KnownPairs {
  /** q·k and dO·v, and the same of magnitudes. */
  readonly dot: Float64Array;
  readonly dotSize: Float64Array;
  readonly product: Float64Array;
  readonly productSize: Float64Array;
  /** The mean squares of their partial sums; null where magnitudes take their place. */
  readonly dotPartials: Float64Array | null;
  readonly productPartials: Float64Array | null;
  /** The addends of scores, and their sizes. */
  readonly addend: Float64Array | null;
  readonly addendSize: Float64Array | null;
  /** The factors of dropout. */
  readonly factor: Float64Array | null;
}

/** Results for the pairs of a tile, [64 × 64]; meaningless where a row does not see a key. */
export interface WeighedPairs {
  /** P with the row's shift, its error without the row's, the part that does not average out, the variance of the rest. */
  readonly weight: Float64Array;
  readonly weightError: Float64Array;
  readonly typicalWeight: Float64Array;
  readonly weightVariance: Float64Array;
  /** Its error, signed, from an error that all scores share. */
  readonly commonWeight: Float64Array;
  /** The softcap's slope, with the same numbers. */
  readonly slope: Float64Array;
  readonly slopeError: Float64Array;
  readonly typicalSlope: Float64Array;
  readonly slopeVariance: Float64Array;
  /** dP, with the same numbers. */
  readonly derivative: Float64Array;
  readonly derivativeError: Float64Array;
  readonly typicalDerivative: Float64Array;
  readonly derivativeVariance: Float64Array;
  readonly commonDerivative: Float64Array;
}

/** Room for a tile's pairs. */
export function emptyWeighedPairs(): WeighedPairs {
  const numbers = () => new Float64Array(tileRows * tileRows);
  return {
    weight: numbers(),
    weightError: numbers(),
    typicalWeight: numbers(),
    weightVariance: numbers(),
    commonWeight: numbers(),
    slope: numbers().fill(1),
    slopeError: numbers(),
    typicalSlope: numbers(),
    slopeVariance: numbers(),
    derivative: numbers(),
    derivativeError: numbers(),
    typicalDerivative: numbers(),
    derivativeVariance: numbers(),
    commonDerivative: numbers(),
  };
}

/** Exponents beyond this are as good as infinite. */
const largestExponent = 700;

/** The number of products and additions of a dot product for which an underflow counts; head dimensions are far below 2^16. */
const mostProducts = 2 ** 16;

/** The mean square of the partial sums of products: the known one, but at most the one that sizes give. */
function meanSquare(
  sizes: number,
  size: number,
  partials: Float64Array | null,
  at: number,
  factor: number,
): number {
  const most = (sizes + size) / 2;
  const ofSizes = most * most;
  return partials === null ? ofSizes : Math.min(ofSizes, factor * factor * partials[at]);
}

/** `p-recompute`: P and the softcap's slope with their errors, of pair `at`. */
function weighScore(
  arithmetic: PairArithmetic,
  known: KnownPairs,
  weighed: WeighedPairs,
  at: number,
  { denominator, weightShift }: RowErrors,
): void {
  const { scale, softcap, scores, operations, operationVariance, elementwise } = arithmetic;
  const { commonScores, exponential, tanhFloor, underflow } = arithmetic;
  const isApart = arithmetic.tellsApart && softcap === null;
  const raw = scale * known.dot[at];
  const rawSize = Math.abs(raw);
  const size = Math.abs(scale) * known.dotSize[at];
  let score = raw;
  let worst = scores.worst * size + operations * rawSize;
  // The scale times log2 e is rounded once for all.
  let typical = isApart ? 0 : (scores.toZero + elementwise / 2) * rawSize;
  const partials = meanSquare(size, rawSize, known.dotPartials, at, scale);
  let variance = scores.walk * scores.walk * partials + operationVariance * raw * raw;
  // The part of a sum that is cut off is anything from zero to twice the mean.
  if (isApart) variance += (scores.toZero * rawSize) ** 2 / 12;
  if (softcap !== null) {
    const z = Math.tanh(raw / softcap);
    const ofZ = Math.abs(z);
    const slope = 1 - z * z;
    const ofSlope = worst / softcap + arithmetic.tanh * ofZ + tanhFloor;
    const ofFloor = (tanhFloor * tanhFloor) / 3;
    weighed.slope[at] = slope;
    weighed.slopeError[at] = Math.min(2 * ofZ * ofSlope + ofSlope * ofSlope + 4 * elementwise, 2);
    weighed.typicalSlope[at] =
      2 * ofZ * (typical / softcap + arithmetic.typicalTanh * ofZ) + elementwise;
    weighed.slopeVariance[at] =
      4 * z * z * (variance / softcap ** 2 + arithmetic.tanhVariance * z * z + ofFloor) +
      arithmetic.elementwiseVariance;
    score = softcap * z;
    const steepest = Math.min(1, slope + worst / softcap);
    const capped = Math.abs(score);
    worst = steepest * worst + arithmetic.tanh * capped + tanhFloor * softcap;
    typical = steepest * typical + arithmetic.typicalTanh * capped;
    variance =
      steepest ** 2 * variance +
      arithmetic.tanhVariance * score * score +
      ofFloor * softcap * softcap;
  }
  const scoreSize = Math.abs(score);
  const addend = known.addend === null ? 0 : known.addend[at];
  const addendSize = known.addendSize === null ? 0 : known.addendSize[at];
  const exponent = score + addend - denominator;
  worst += operations * (scoreSize + 2 * addendSize) + 2 * elementwise * Math.abs(exponent);
  typical += elementwise * ((isApart ? 0 : scoreSize / 2) + addendSize);
  variance +=
    operationVariance * (score * score + 4 * addendSize * addendSize) +
    arithmetic.elementwiseVariance * exponent * exponent;
  const shifted = 1 + weightShift;
  const weight = Math.exp(Math.min(exponent, largestExponent)) * shifted;
  weighed.weight[at] = weight;
  const floor = 2 * underflow;
  if (worst < 1) {
    // e^x − 1 ≤ x + x² there.
    const error = weight * worst * (1 + worst) * (1 + exponential) + weight * exponential + floor;
    weighed.weightError[at] = error;
    weighed.typicalWeight[at] = Math.min(weight * typical * (1 + typical) + floor, error);
    weighed.commonWeight[at] = isApart ? weight * commonScores * raw : 0;
    weighed.weightVariance[at] =
      weight * weight * (Math.min(variance, worst * worst) + exponential * exponential);
  } else {
    const grown = Math.exp(Math.min(exponent + worst, largestExponent)) * shifted;
    weighed.weightError[at] = grown * (1 + exponential) + weight * exponential + floor;
    weighed.typicalWeight[at] = weighed.weightError[at];
    weighed.commonWeight[at] = 0;
    weighed.weightVariance[at] = 0;
  }
  const largest = Math.max(Math.abs(known.dot[at]), rawSize, scoreSize + addendSize) + worst;
  if (!(largest < arithmetic.largestScore)) weighed.weightError[at] = Infinity;
}

/** `dp-accumulate`: dP with its errors, of pair `at`. */
function weighDerivative(
  arithmetic: PairArithmetic,
  known: KnownPairs,
  weighed: WeighedPairs,
  at: number,
): void {
  const { commonProducts, products, dropout, productRounding, underflow } = arithmetic;
  const isApart = arithmetic.tellsApart;
  const factor = known.factor === null ? 1 : known.factor[at];
  const product = known.product[at];
  const derivative = product * factor;
  const size = Math.abs(derivative);
  const sizes = known.productSize[at] * factor;
  const floor = underflow * mostProducts;
  const error =
    (products.worst * sizes + (dropout + productRounding) * size) * (1 + 2 ** -8) + floor;
  weighed.derivative[at] = derivative;
  const isWithin = Math.max(Math.abs(product), size) + error < arithmetic.largestProduct;
  weighed.derivativeError[at] = isWithin ? error : Infinity;
  weighed.typicalDerivative[at] = isApart ? floor : (products.toZero + dropout) * size + floor;
  weighed.commonDerivative[at] = isApart ? commonProducts * derivative : 0;
  const rounded = productRounding * size;
  weighed.derivativeVariance[at] =
    products.walk * products.walk * meanSquare(sizes, size, known.productPartials, at, factor) +
    (isApart ? (products.toZero * size) ** 2 / 12 : 0) +
    meanRounding * rounded * rounded;
}

/** `p-recompute` and `dp-accumulate` of the pairs of a tile. @param ranges the keys that each row sees, within the tile */
export function weighPairs(
  arithmetic: PairArithmetic,
  known: KnownPairs,
  weighed: WeighedPairs,
  rows: readonly RowErrors[],
  ranges: readonly (readonly KeyRange[])[],
): void {
  for (let i = 0; i < rows.length; i++)
    for (const { begin, end } of ranges[i])
      for (let at = i * tileRows + begin; at < i * tileRows + end; at++) {
        weighScore(arithmetic, known, weighed, at, rows[i]);
        weighDerivative(arithmetic, known, weighed, at);
      }
}
