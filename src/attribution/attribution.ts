import type { AttributedKernel } from '../../kernels/index.js';
import type { FormatName } from '../formats/index.js';
import type { ProblemShape } from '../problem/index.js';
import type { ErrorMeasure, LseMeasure } from './error-measure.js';

/**
 * What one technique has to do with the kernel's error. Shares are of the sum of squares of the error
 * in units of Σ p|v|; a share is the projection of the technique's part on the whole, below 0 where
 * it works against the rest.
 */
export interface TechniqueAttribution {
  readonly technique: string;
  /** The error with this technique emulated and all others exact. */
  readonly alone: ErrorMeasure;
  /** That of the LSE. */
  readonly lse: LseMeasure;
  /** Its part in the whole error. */
  readonly whole: TechniquePart;
  /**
   * Its part in the error before the output is rounded, where small errors do not drown in elements
   * that happen to be rounded the other way; null for `output-round` itself.
   */
  readonly beforeRounding: TechniquePart | null;
}

/** A technique's part in an error. */
export interface TechniquePart {
  /** What the error changes by when this technique becomes emulated after all others. */
  readonly last: ErrorMeasure;
  /** The error that is left with this technique exact and all others emulated. */
  readonly without: ErrorMeasure;
  /** What emulating it adds after those that come before it in the kernel: these shares sum to 1. */
  readonly share: number;
  /** What the technique alone makes: with the `interaction` these shares sum to 1. */
  readonly shareAlone: number;
}

/** 1 − Σ shareAlone: what an error is more, or less, than the sum of the techniques alone. */
export interface Interaction {
  readonly whole: number;
  readonly beforeRounding: number;
}

/** The error of `p-round` alone, in two parts that sum to it, and what the first does to the whole. */
export interface WeightRounding {
  /** From the largest weight of each row: none where that is exactly 1, as without a lag. */
  readonly largestWeight: ErrorMeasure;
  readonly otherWeights: ErrorMeasure;
  /** The kernel's error if it left the largest weight of each row unrounded and all else as it is. */
  readonly largestUnrounded: ErrorMeasure;
}

/** How far the maxima in use lag behind the rows' largest scores when the last block is done. */
export interface MaximumLag {
  readonly rows: number;
  /** Rows whose maximum lags. */
  readonly lagging: number;
  /** Over the lagging rows, in log2: their largest weight is 2^lag instead of 1. */
  readonly mean: number;
  readonly max: number;
}

/** A kernel's error on a problem, shared out among its techniques. JSON keeps all of it. */
export interface Attribution {
  /** The kernel model's name. */
  readonly kernel: string;
  /** Every setting of it with its value. */
  readonly settings: AttributedKernel['settings'];
  readonly shape: ProblemShape;
  readonly outputFormat: FormatName;
  /** Largest magnitude of the exact output, where finite. */
  readonly largestOutput: number;
  /** The kernel's error: every technique emulated. */
  readonly total: ErrorMeasure;
  /** The error before the output is rounded. */
  readonly beforeRounding: ErrorMeasure;
  /** What is left with every technique exact: the error of the attribution itself. */
  readonly exact: ErrorMeasure;
  /** In the order in which they act. */
  readonly techniques: readonly TechniqueAttribution[];
  readonly interaction: Interaction;
  /** The error of the LSE with every technique emulated, and with every one exact. */
  readonly lse: { readonly total: LseMeasure; readonly exact: LseMeasure };
  /** Null for a kernel that does not round its weights. */
  readonly weightRounding: WeightRounding | null;
  /** Null for a kernel whose maximum cannot lag, and without rows. */
  readonly lag: MaximumLag | null;
}
