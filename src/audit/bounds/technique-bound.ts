import type { KernelArithmetic } from '../../../kernels/index.js';

/** Facts about a row, for putting its bounds together. */
export interface RowTerms {
  readonly arithmetic: KernelArithmetic;
  readonly errors: RowErrors;
  readonly keys: number;
  /** The largest magnitude of a maximum in use, and that of the last one (log2). */
  readonly largestMaximum: number;
  readonly finalMaximum: number;
  /** |log2| of the row sum as the kernel has it. */
  readonly logarithm: number;
  /** The exact LSE, natural units. */
  readonly lse: number;
  /** The largest total of weights that underflow, relative to the row sum. */
  readonly lost: number;
  /** The most that a number beside the weights before the division is, in units of the row sum. */
  readonly gain: number;
}

/** Facts about an element. */
export interface ElementTerms {
  /** |O| and Σ w|v|. */
  readonly size: number;
  readonly magnitude: number;
  /** √(Σ w (v − O)²): how far a weight error of square mean 1 may move it. */
  readonly scatter: number;
  /** The most by which rounding the weights may move it. */
  readonly moved: number;
  /** The largest losses of the sums over keys, and of rescales of these sums. */
  readonly accumulated: number;
  readonly rescaled: number;
  /** The largest total of weights that underflow. */
  readonly underflow: number;
}

/** Names of the facts about an element. */
export const elementTerms = [
  ...(['size', 'magnitude', 'scatter', 'moved', 'accumulated', 'rescaled', 'underflow'] as const),
] as const satisfies readonly (keyof ElementTerms)[];

/**
 * Σ of an element's terms, each times its coefficient, and of the constant; an absent coefficient does not count, not even times
 * 0.
 */
export type ElementBound = { readonly [Term in keyof ElementTerms | 'constant']?: number };

/** The worst-case bound of one technique, to first order: `finishRow` adds the rest. */
export interface TechniqueBound {
  /** A linear form in the facts about the elements of one row, in the output's unit. */
  readonly elements: (row: RowTerms) => ElementBound;
  /** The bound for the LSE, in natural logarithms. */
  readonly lse: (row: RowTerms) => number;
}

/** A technique that changes weights in numerator and row sum alike. */
export interface WeightError {
  /** The mean error over w, relative to a weight. */
  readonly mean: number;
  /** The root mean square over w. */
  readonly rootMeanSquare: number;
}

/** The error of weights that all share one bound, over those with this sum. */
export function alike(error: number, mass: number): WeightError {
  const sum = Math.max(mass, 0);
  return { mean: error * sum, rootMeanSquare: error * Math.sqrt(sum) };
}

/**
 * The errors of a row's weights and sums, added up before they are spread over the columns. All but `lse…`
 * are relative; the weights' errors count in the square mean over w for the output (Theorem 1 of
 * docs/theory/bounds.md) and in the mean for the row sum.
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
  /** The largest loss of products of sums with factors where they are subnormal, in the output's unit. */
  rescaleUnderflow = 0;
  /** The largest relative error of a weight. */
  largest = 0;
  /** Σ of the mean errors of rounding weights below the smallest normal number, where they are not known. */
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
    // 0 · ∞: a tile without weight may have any errors.
    if (mass === 0) return;
    this.mass += mass;
    this.blockMass += mass;
    this.common += mass * common;
    this.commonSquared += mass * common * common;
    this.commonOfLse += mass * commonOfLse;
    this.rescales += mass * rescales;
    this.rescalesSquared += mass * rescales * rescales;
  }
  /** The same relative to a row sum that is larger: these are `share` of it. */
  times(share: number): RowErrors {
    const scaled = new RowErrors();
    for (const name of linear) scaled[name] = this[name] * share;
    for (const name of quadratic) scaled[name] = this[name] * share ** 2;
    scaled.largest = this.largest;
    return scaled;
  }
}

/** The errors that are sums over weights, and those that are sums over their squares. */
const linear = [
  ...([
    'mass',
    'polynomialMass',
    'distance',
    'distanceSquared',
    'scores',
    'scoresSquared',
  ] as const),
  ...(['common', 'commonSquared', 'commonOfLse', 'rescales', 'rescalesSquared'] as const),
  ...(['rowSum', 'rescaledSum', 'rescaleUnderflow', 'subnormalBias', 'blockMass'] as const),
] as const;
const quadratic = ['exponentialVariance', 'squares', 'squaresAlike'] as const;
