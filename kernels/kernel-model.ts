import type { FormatName, PatternArray } from '../src/formats/index.js';
import type { FeatureName, Problem, ProblemShape } from '../src/problem/index.js';
import type { KernelArithmetic } from './arithmetic.js';
import type { BackwardModel } from './backward/model.js';
import type { AttributedKernel } from './techniques.js';
import type { KernelProgram } from './kernel-program.js';
import type { ModelPromises, PremiseDeclaration } from './promises.js';
import type { KernelSetting, KernelSettings } from './setting-values.js';

export type { KernelSetting, KernelSettings } from './setting-values.js';

/** The results of some rows. */
export interface KernelPiece {
  /** Index of the first row among all rows [batch · heads · queries]. */
  readonly firstRow: number;
  readonly rows: number;
  /** [rows × vDim] bit patterns in the output's format. */
  readonly out: PatternArray;
  /** [rows], natural logarithm. */
  readonly lse: Float32Array;
  /** [rows]: number of rescales of each row, for models that rescale. */
  readonly rescales: Int32Array | null;
  /** Counts by name. */
  readonly counters: Readonly<Record<string, number>>;
}

/** A kernel model made ready for one problem. Pieces do not depend on one another. */
export interface PreparedKernel {
  readonly shape: ProblemShape;
  readonly outFormat: FormatName;
  readonly pieces: number;
  /** Every setting with its value. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** Evidence for its arithmetic, a line each. */
  readonly evidence: readonly string[];
  readonly run: (piece: number) => KernelPiece;
}

/** One of a kernel's ways to compute 2^x. */
export interface KernelExponential {
  readonly name: string;
  /** The unit that computes it, as in `The special function unit`. */
  readonly place: string;
  /** Share of a block's columns that it computes, 0 to 1. */
  readonly share: number;
  /** Maps fp32 numbers to fp32 numbers. */
  readonly exp2: (x: number) => number;
}

/**
 * An emulated attention kernel, with everything that the audit, the bounds, the property suite, the
 * attribution and the command line use.
 */
export interface KernelModel {
  readonly name: string;
  readonly description: string;
  readonly settings: readonly KernelSetting[];
  /**
   * Features that a problem may have beside q, k, v, scale, causal, window and softcap, in every use of the model;
   * `kernelModel` makes an entry that refuses the rest.
   */
  readonly features: readonly FeatureName[];
  /** Features that an emulation takes beside them, without bounds and attribution. */
  readonly emulated?: readonly FeatureName[];
  /**
   * Makes the model ready for a problem. Settings that are not given take the kernel's own choice.
   * @throws RequestError for a problem that the kernel does not take, an unknown key or a bad value
   */
  readonly prepare: (problem: Problem, settings: KernelSettings) => PreparedKernel;
  /**
   * The model with techniques that can be emulated or exact.
   * @throws RequestError as `prepare`, and for settings that cannot be attributed
   */
  readonly attribute: (problem: Problem, settings: KernelSettings) => AttributedKernel;
  /**
   * Its arithmetic, for its error bounds. A variant's own settings count, its bug does not.
   * @throws RequestError as `prepare`, and for a problem or settings that there are no bounds for
   */
  readonly arithmetic: (problem: Problem, settings: KernelSettings) => KernelArithmetic;
  /** Its declarations beside its arithmetic, for tests that take no whole arithmetic. */
  readonly premises: (settings: KernelSettings) => PremiseDeclaration;
  /** Its promises to the property suite. */
  readonly promises: (settings: KernelSettings) => ModelPromises;
  /** Settings in which an output of unknown origin is compared with it; the likelier of equal matches first. */
  readonly candidates: readonly Readonly<Record<string, string>>[];
  /** Settings in which a maximum never lags; null for a model whose maximum cannot. */
  readonly unlagged: Readonly<Record<string, string>> | null;
  /**
   * Its ways to compute 2^x, whose errors are drawn; none where it is taken as correctly rounded.
   * @throws RequestError as `prepare`
   */
  readonly exponentials: (
    problem: Problem,
    settings: KernelSettings,
  ) => readonly KernelExponential[];
  /** Loads its program for the emulated machine, with the machine, which nothing else of a model needs; null for none. */
  readonly program: (() => Promise<KernelProgram>) | null;
  /** Its gradients; null for a model of the forward pass alone. */
  readonly backward: BackwardModel | null;
}
