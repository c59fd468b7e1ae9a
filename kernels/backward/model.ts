import type { FormatName, PatternArray } from '../../src/formats/index.js';
import type { FeatureName, Problem, ProblemShape, Tensor } from '../../src/problem/index.js';
import type { BackwardPromises } from '../promises.js';
import type { KernelSetting, KernelSettings } from '../setting-values.js';

/** Outputs that a kernel's forward pass stored, and its backward pass may read. */
export interface ForwardOutputs {
  /** [batch, heads, queries, vDim] */
  readonly out: Tensor;
  /** [batch, heads, queries], natural logarithm, fp32. */
  readonly lse: Tensor;
}

/** Inputs of a backward pass beside the problem. */
export interface BackwardInputs {
  /** The gradient of the output: [batch, heads, queries, vDim], of rank 3 for a batch of one. */
  readonly dout: Tensor;
  /** Null: the model's own forward pass is computed first. */
  readonly forward: ForwardOutputs | null;
}

/**
 * The patterns of the gradients of one key/value head and the query heads that share it; null for a gradient that is
 * unknown.
 */
export interface BackwardPatterns {
  /** [query heads of the group · queries × qkDim] */
  readonly dq: PatternArray | null;
  /** [keys × qkDim], [keys × vDim] */
  readonly dk: PatternArray | null;
  readonly dv: PatternArray | null;
}

/** The gradients of one key/value head. */
export interface BackwardPiece extends BackwardPatterns {
  /** Counted over batch · kv heads; its query heads lie at kvHead · group size. */
  readonly kvHead: number;
  readonly dq: PatternArray;
  readonly dk: PatternArray;
  readonly dv: PatternArray;
  /** Counts by name. */
  readonly counters: Readonly<Record<string, number>>;
}

/**
 * Numbers of elements of a given gradient, by their patterns: those that the fixed order gives too; those that some other
 * order of the same additions gives; those for which this could not be decided; those that no order gives.
 */
export interface OrderMatch {
  readonly equal: number;
  readonly someOrder: number;
  readonly undecided: number;
  readonly noOrder: number;
}

/** {@link OrderMatch} of each gradient; null for one that was not given. */
export type OrderMatches = Readonly<Record<keyof BackwardPatterns, OrderMatch | null>>;

/** A backward pass made ready for one problem. Pieces do not depend on one another. */
export interface PreparedBackward {
  readonly shape: ProblemShape;
  /** Format of dQ, dK and dV. */
  readonly format: FormatName;
  /** batch · kv heads. */
  readonly pieces: number;
  /** Every setting with its value. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** Evidence for its arithmetic, a line each. */
  readonly evidence: readonly string[];
  readonly run: (piece: number) => BackwardPiece;
  /** Null where the order of all additions is fixed. */
  readonly someOrder: ((piece: number, given: BackwardPatterns) => OrderMatches) | null;
}

/** Source of the row sums D of a backward pass: dO·O with the stored O, or Σ P dP with its own P and dP. */
export type DeltaSource = 'stored-output' | 'weights' | 'any';

/**
 * Arithmetic of a kernel's gradients, where its bounds are to be narrower (or wider) than those of any correct fused
 * kernel: fields left out are as there.
 */
export interface GradientArithmetic {
  /** The kernel that it describes. */
  readonly description: string;
  readonly delta?: DeltaSource;
  /** Formats that the products of dO and O are rounded to before they are added, and that their sum has. */
  readonly deltaProducts?: FormatName;
  readonly deltaSums?: FormatName;
  /** Format that P and dS of a sink are rounded to before dSink adds them. */
  readonly sinkTerms?: FormatName;
  /** Formats that P is rounded to before dV's product, and dS before those of dQ and dK. */
  readonly p?: FormatName;
  readonly ds?: FormatName;
  /** Formats that scores and dP are stored in between, and P before dS is computed from it. */
  readonly scores?: FormatName;
  readonly dp?: FormatName;
  readonly weights?: FormatName;
  /** Number of times that P and dS are rounded. */
  readonly pRoundings?: number;
  readonly dsRoundings?: number;
  /** Format that dK and dV of one query head are stored in before those of a group are added. */
  readonly partials?: FormatName;
  readonly scaleBeforeRounding?: boolean;
}

/** The backward pass of a kernel model. */
export interface BackwardModel {
  /** Settings beside those of the forward pass. */
  readonly settings: readonly KernelSetting[];
  /** Features that a problem may have beside q, k, v, scale, causal, window and softcap. */
  readonly features: readonly FeatureName[];
  /** The problems that it promises to take, where these are fewer than those of the forward pass. */
  readonly promises?: BackwardPromises;
  /**
   * Makes the model ready.
   * @param settings those of the forward pass and its own
   * @throws RequestError for a problem that the kernel does not take, dO or O of another shape, an unknown key or a bad value
   */
  readonly prepare: (
    problem: Problem,
    inputs: BackwardInputs,
    settings: KernelSettings,
  ) => PreparedBackward;
  /** @throws RequestError as `prepare` */
  readonly arithmetic: (problem: Problem, settings: KernelSettings) => GradientArithmetic;
  /** Settings in which gradients of unknown origin are compared with it; the likelier of equal matches first. */
  readonly candidates: readonly Readonly<Record<string, string>>[];
}
