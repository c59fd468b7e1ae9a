/**
 * What the errors of a row's weights and sums amount to, before they are spread over the columns. All
 * but `lse…` are relative; the weights' errors count in the square mean over w for the output
 * (Theorem 1 of docs/bounds.md) and in the mean for the row sum.
 */
export class RowErrors {
  /** Σ w, and Σ w over the columns of the polynomial. */
  mass = 0;
  polynomialMass = 0;
  /** Σ w·z and Σ w·z², z the distance of an exponent from the maximum in use. */
  distance = 0;
  distanceSquared = 0;
  /** Σ of 2w² times the square of the exponential's error, times how many weights err alike. */
  exponentialVariance = 0;
  /** Σ w·e and Σ w·e² of the scores' errors, of the common part of exponents, and of rescales. */
  scores = 0;
  scoresSquared = 0;
  common = 0;
  commonSquared = 0;
  /** The common part as the LSE sees it, where nothing cancels. */
  commonOfLse = 0;
  rescales = 0;
  rescalesSquared = 0;
  /** Relative errors of the row sum, from additions and from products with factors. */
  rowSum = 0;
  rescaledSum = 0;
  /** What products of sums with factors may lose where they are subnormal, in the output's unit. */
  rescaleUnderflow = 0;
  /** The largest relative error of a weight. */
  largest = 0;
  /** Σ of what rounding weights below the smallest normal number is off by on average, if not known. */
  subnormalBias = 0;
  /** Σ w², and the same times how many weights of the row round alike. */
  squares = 0;
  squaresAlike = 0;
  /** Σ w of the block so far. */
  blockMass = 0;

  /** Σ w, rounded up. */
  get massAtMost(): number {
    return Math.min(this.mass * (1 + 2 ** -12), 1);
  }

  /** Adds the weights of a tile: Σ w of it, with errors that are the same for all of them. */
  addTile(mass: number, common: number, commonOfLse: number, rescales: number): void {
    this.mass += mass;
    this.blockMass += mass;
    this.common += mass * common;
    this.commonSquared += mass * common * common;
    this.commonOfLse += mass * commonOfLse;
    this.rescales += mass * rescales;
    this.rescalesSquared += mass * rescales * rescales;
  }
}
