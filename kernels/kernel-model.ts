import type { FormatName, PatternArray } from '../src/formats/index.js';
import type { Problem, ProblemShape } from '../src/problem/index.js';
import type { AttributedKernel } from './attributed-kernel.js';

/** One thing about a kernel model that a user may choose. */
export interface KernelSetting {
  /** As in `exp2.degree`. */
  readonly key: string;
  /** What it is, and what one may give. */
  readonly description: string;
}

/** The results of some rows. */
export interface KernelPiece {
  /** Where the rows lie among all rows [batch · heads · queries]. */
  readonly firstRow: number;
  readonly rows: number;
  /** [rows × vDim] bit patterns in the output's format. */
  readonly out: PatternArray;
  /** [rows], natural logarithm. */
  readonly lse: Float32Array;
  /** [rows]: how often each row was rescaled, for models that rescale. */
  readonly rescales: Int32Array | null;
  /** What was counted, by name. */
  readonly counters: Readonly<Record<string, number>>;
}

/** A kernel model made ready for one problem. Pieces do not depend on one another. */
export interface PreparedKernel {
  readonly shape: ProblemShape;
  readonly outFormat: FormatName;
  readonly pieces: number;
  /** Every setting with its value. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** What its arithmetic rests on, a line each. */
  readonly evidence: readonly string[];
  readonly run: (piece: number) => KernelPiece;
}

/** An emulated attention kernel. */
export interface KernelModel {
  readonly name: string;
  readonly description: string;
  readonly settings: readonly KernelSetting[];
  /**
   * Makes the model ready for a problem.
   * @param settings values as text, by key; the others are what the kernel would choose
   * @throws RequestError for a problem that the kernel does not take, an unknown key or a bad value
   */
  readonly prepare: (problem: Problem, settings: ReadonlyMap<string, string>) => PreparedKernel;
  /**
   * The model with techniques that can be emulated or exact.
   * @param settings as of `prepare`
   * @throws RequestError as `prepare`, and for settings that cannot be attributed
   */
  readonly attribute: (problem: Problem, settings: ReadonlyMap<string, string>) => AttributedKernel;
}
