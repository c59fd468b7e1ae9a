import type { FormatName } from '../src/formats/index.js';
import type { ProblemShape } from '../src/problem/index.js';
import type { TechniqueDefinition } from './techniques.js';

/** The techniques, by name, that a run emulates; the kernel's others are exact in it. */
export type EmulatedNames = ReadonlySet<string>;

/** Each row's largest weight, as `p-round` takes it in exact arithmetic. */
export interface LargestWeights {
  /** [rows]: its key, counted from the head's first; −1 for a row that has none. */
  readonly keys: Int32Array;
  /** [rows]: the weight itself; 0 for a row that has none. */
  readonly weights: Float64Array;
  /** [rows]: what `p-round` makes of it. */
  readonly rounded: Float64Array;
  /** For each run, [rows]: what the sum of weights times values is divided by after `p-round`. */
  readonly divisors: readonly Float64Array[];
}

/** The results of some rows, in every run. */
export interface AttributedPiece {
  /** Where the rows lie among all rows [batch · heads · queries]. */
  readonly firstRow: number;
  readonly rows: number;
  /** For each run the output values, [rows × vDim]. */
  readonly outputs: readonly Float64Array[];
  /** For each run [rows], natural logarithm; −∞ for a row without keys. */
  readonly lse: readonly Float64Array[];
  /** Null for a kernel that does not round its weights. */
  readonly largestWeights: LargestWeights | null;
  /**
   * [rows]: log2 of the factor by which the row's largest weight exceeds the maximum in use, 0 where it
   * does not; null for a kernel whose maximum cannot lag.
   */
  readonly lags: Float64Array | null;
}

/**
 * A kernel model on one problem whose techniques can each be emulated, which is as the kernel does it,
 * or exact, which is in fp64. With all of them emulated its results are those of the model bit for bit,
 * with none exact attention to about 1e-12 of Σ p|v|. An emulated technique whose operands are no
 * numbers of its format, because an exact one came before, is executed at the nearest operands, and the
 * error that it makes there is added to the exact result: alone it shows its own error only.
 */
export interface AttributedKernel {
  /** The model's name. */
  readonly model: string;
  readonly shape: ProblemShape;
  readonly outFormat: FormatName;
  /** Every setting of the model with its value. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** In the order in which they act; the last is `output-round`. */
  readonly techniques: readonly string[];
  /** By technique. */
  readonly definitions: Readonly<Record<string, TechniqueDefinition>>;
  readonly pieces: number;
  /** Where the rows of a piece lie among all rows [batch · heads · queries]. */
  readonly rowsOf: (piece: number) => { readonly first: number; readonly rows: number };
  /**
   * What computes one piece in several runs, one for each choice of emulated techniques. Runs share what
   * their choices have in common, so that all combinations cost much less than as many single runs.
   * Pieces do not depend on one another, but use the same memory: one after the other.
   * @throws RequestError for a technique that the kernel does not have
   */
  readonly prepareRuns: (choices: readonly EmulatedNames[]) => (piece: number) => AttributedPiece;
}
