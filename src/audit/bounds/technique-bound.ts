import type { KernelArithmetic } from './kernel-arithmetic.js';
import type { RowErrors } from './row-errors.js';

/** What is known of a row when its bounds are put together. */
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
  /** What weights that underflow may amount to, relative to the row sum. */
  readonly lost: number;
  /** The most that a number beside the weights before the division is, in units of the row sum. */
  readonly gain: number;
}

/** What is known of an element. */
export interface ElementTerms {
  /** |O| and Σ w|v|. */
  readonly size: number;
  readonly magnitude: number;
  /** √(Σ w (v − O)²): how far a weight error of square mean 1 may move it. */
  readonly scatter: number;
  /** What rounding the weights may move. */
  readonly moved: number;
  /** What the sums over keys, and rescales of these sums, may lose. */
  readonly accumulated: number;
  readonly rescaled: number;
  /** What weights that underflow may amount to. */
  readonly underflow: number;
}

/** The worst-case bound of one technique, to the first order: `finishRow` adds what is beyond. */
export interface TechniqueBound {
  /** For one row, a function of its elements: in the output's unit. */
  readonly elements: (row: RowTerms) => (element: ElementTerms) => number;
  /** In natural logarithms. */
  readonly lse: (row: RowTerms) => number;
}

/** A technique that changes weights in numerator and row sum alike. */
export interface WeightError {
  /** Relative to a weight, on average over w. */
  readonly mean: number;
  /** In the square mean over w. */
  readonly rootMeanSquare: number;
}

/** The error of weights that all share one bound, over those with this sum. */
export function alike(error: number, mass: number): WeightError {
  const sum = Math.max(mass, 0);
  return { mean: error * sum, rootMeanSquare: error * Math.sqrt(sum) };
}
