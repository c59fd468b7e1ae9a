import type { FormatName } from '../src/formats/index.js';
import type { ProblemShape } from '../src/problem/index.js';

/**
 * The sources of error of an attention kernel that there are bounds for, in the order in which they act
 * on a block of keys.
 */
export const techniques = [
  'qk-accumulate',
  'scale-subtract',
  'exp2-hardware',
  'exp2-polynomial',
  'p-round',
  'rescale',
  'pv-accumulate',
  'row-sum',
  'normalise',
  'output-round',
] as const;
/** One of {@link techniques}. */
export type Technique = (typeof techniques)[number];

/**
 * The techniques that are emulated, as the GPU executes them; the others are exact. A kernel's definitions give the
 * meaning for each technique, and these rules hold for all:
 *
 * - Exact is fp64. Its own error is some 2^-50 of Σ p|v|, below any technique's error.
 * - An instruction needs operands in its format. Where an exact operation came before, they are fp64 numbers: the
 *   instruction is executed on the nearest operands of its format, and its error there is carried over to the exact
 *   result of the actual operands. So an emulated technique alone shows its own error only, and where all before it
 *   are emulated the operands equal those on the GPU and so does the result, to the last bit.
 * - The path is always the GPU's own: the running maximum (of the emulated scores), which rescales are skipped,
 *   which columns the polynomial computes. Any path gives exact attention if everything is exact, so a lagging
 *   maximum is no error by itself; it changes the errors of others.
 * - Where the GPU's scores are off by octaves, exact weights relative to its maxima would leave the range of formats
 *   that the GPU's never leave, and rounding them would err as the GPU never does. There the maximum is that of the
 *   run's own scores, over the same blocks of keys.
 */
export type EmulatedTechniques = ReadonlySet<Technique>;

/** Meaning of a technique of a kernel, emulated and exact. */
export interface TechniqueDefinition {
  readonly emulated: string;
  readonly exact: string;
  /** The technique whose bound covers it, `all` for the sum of all bounds; default that of its own name. */
  readonly bound?: Technique | 'all';
}

/** The techniques, by name, that a run emulates; the kernel's others are exact in it. */
export type EmulatedNames = ReadonlySet<string>;

/** Each row's largest weight, as `p-round` takes it in exact arithmetic. */
export interface LargestWeights {
  /** [rows]: its key, counted from the head's first; −1 for a row that has none. */
  readonly keys: Int32Array;
  /** [rows]: the weight itself; 0 for a row that has none. */
  readonly weights: Float64Array;
  /** [rows]: the weight after `p-round`. */
  readonly rounded: Float64Array;
  /** [rows] for each run: the divisor of the sum of weights times values after `p-round`. */
  readonly divisors: readonly Float64Array[];
}

/** The results of some rows, in every run. */
export interface AttributedPiece {
  /** Index of the first row among all rows [batch · heads · queries]. */
  readonly firstRow: number;
  readonly rows: number;
  /** Output values of each run, [rows × vDim]. */
  readonly outputs: readonly Float64Array[];
  /** LSEs of each run, [rows], natural logarithm; −∞ for a row without keys. */
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
 * A kernel model on one problem whose techniques can each be emulated, as the kernel executes it, or
 * exact, in fp64. With all of them emulated its results are those of the model bit for bit, with none
 * exact attention to about 1e-12 of Σ p|v|. An emulated technique whose operands are no numbers of its
 * format, because an exact one came before, is executed at the nearest operands, and its error there is
 * added to the exact result: alone it shows its own error only.
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
  readonly definitions: Readonly<Record<string, TechniqueDefinition>>;
  readonly pieces: number;
  /** Position of a piece's rows among all rows [batch · heads · queries]. */
  readonly rowsOf: (piece: number) => { readonly first: number; readonly rows: number };
  /**
   * Prepares the computation of one piece in several runs, one for each choice of emulated techniques.
   * Runs share the parts that their choices have in common, so that all combinations cost much less than
   * as many single runs. Pieces do not depend on one another, but use the same memory: one after the
   * other.
   * @throws RequestError for a technique that the kernel does not have
   */
  readonly prepareRuns: (choices: readonly EmulatedNames[]) => (piece: number) => AttributedPiece;
}
