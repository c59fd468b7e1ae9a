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

/** The sums of a row, in the order of the loops. */
export const sumNumbers = [
  ...(['size', 'squares', 'errors', 'typical', 'variance'] as const),
  ...(['scatter', 'typicalScatter', 'scatterVariance', 'weightErrors', 'typicalWeights'] as const),
  ...(['commonErrors', 'commonScatter', 'commonWeights', 'product', 'largestProduct'] as const),
  ...(['weightVariance', 'alikeAdditions', 'squaredAdditions'] as const),
] as const satisfies readonly (keyof RowSums)[];

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
