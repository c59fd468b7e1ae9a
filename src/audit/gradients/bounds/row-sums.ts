import type { WeighedPairs } from './weigh-pairs.js';

/** Sums over the keys of a row that its errors follow from. */
export interface RowSums {
  /** Σ P|dP| and Σ P²dP². */
  size: number;
  squares: number;
  /** Σ of the errors of P and dP, times the other: at worst, the part that does not average out, the variance of the rest. */
  errors: number;
  typical: number;
  variance: number;
  /** The same for P times dP − D: the effect of errors of the weights on O, and dO·O. */
  scatter: number;
  typicalScatter: number;
  scatterVariance: number;
  /** The same for P alone: their effect on the row sum. */
  weightErrors: number;
  typicalWeights: number;
  /** The same for the errors that all scores share, signed: of P dP, of P (dP − D), and of P. */
  commonErrors: number;
  commonScatter: number;
  commonWeights: number;
  /** Σ P dP, and the largest size that it has had on its way. */
  product: number;
  largestProduct: number;
  weightVariance: number;
  /**
   * Additions of equal weights to the row sum, which round alike: keys in groups of at least {@link manyAlike}; and the squares of the counts
   * of smaller groups.
   */
  alikeAdditions: number;
  squaredAdditions: number;
}

/** The number of equal terms of a sum from which on they err as one, and not by chance. */
const manyAlike = 16;

/** Sums of nothing. */
export function emptyRowSums(): RowSums {
  return {
    size: 0,
    squares: 0,
    errors: 0,
    typical: 0,
    variance: 0,
    scatter: 0,
    typicalScatter: 0,
    scatterVariance: 0,
    weightErrors: 0,
    typicalWeights: 0,
    commonErrors: 0,
    commonScatter: 0,
    commonWeights: 0,
    product: 0,
    largestProduct: 0,
    weightVariance: 0,
    alikeAdditions: 0,
    squaredAdditions: 0,
  };
}

/**
 * Adds pair `at` of a tile that is weighed.
 * @param alike number of keys of the head that have the same k, and the same v
 */
export function addToRow(
  sums: RowSums,
  pairs: WeighedPairs,
  at: number,
  mean: number,
  alike: { readonly scores: number; readonly products: number },
): void {
  const weight = pairs.weight[at];
  const weightError = pairs.weightError[at];
  const derivative = pairs.derivative[at];
  const derivativeError = pairs.derivativeError[at];
  const typicalWeight = pairs.typicalWeight[at];
  const weightVariance = pairs.weightVariance[at] * alike.scores;
  const size = Math.abs(derivative);
  const distance = Math.abs(derivative - mean);
  sums.size += weight * size;
  sums.squares += (weight * size) ** 2;
  sums.errors += weightError * (size + derivativeError) + weight * derivativeError;
  sums.typical += typicalWeight * size + weight * pairs.typicalDerivative[at];
  sums.variance +=
    weightVariance * size ** 2 + weight ** 2 * pairs.derivativeVariance[at] * alike.products;
  sums.scatter += weightError * distance;
  sums.typicalScatter += typicalWeight * distance;
  sums.scatterVariance += weightVariance * distance ** 2;
  sums.weightErrors += weightError;
  sums.typicalWeights += typicalWeight;
  sums.weightVariance += weightVariance;
  const commonWeight = pairs.commonWeight[at];
  sums.commonErrors += commonWeight * derivative;
  sums.commonScatter += commonWeight * (derivative - mean);
  sums.commonWeights += commonWeight;
  sums.product += weight * derivative;
  sums.largestProduct = Math.max(sums.largestProduct, Math.abs(sums.product));
  if (alike.scores < manyAlike) sums.squaredAdditions += alike.scores;
  else sums.alikeAdditions++;
}
