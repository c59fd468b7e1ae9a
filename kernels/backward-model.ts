import type { FormatName, PatternArray } from '../src/formats/index.js';
import type { FeatureName, Problem, ProblemShape, Tensor } from '../src/problem/index.js';
import type { BackwardPromises } from './promises.js';
import type { KernelSetting, KernelSettings } from './setting-values.js';

/** What a kernel's forward pass stored, and its backward pass may read. */
export interface ForwardOutputs {
  /** [batch, heads, queries, vDim] */
  readonly out: Tensor;
  /** [batch, heads, queries], natural logarithm, fp32. */
  readonly lse: Tensor;
}

/** What a backward pass is given beside the problem. */
export interface BackwardInputs {
  /** The gradient of the output: [batch, heads, queries, vDim], of rank 3 for a batch of one. */
  readonly dout: Tensor;
  /** Null: the model's own forward pass is computed first. */
  readonly forward: ForwardOutputs | null;
}

/** The patterns of the gradients of one key/value head and the query heads that share it; null for one that is not known. */
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
  /** What was counted, by name. */
  readonly counters: Readonly<Record<string, number>>;
}

/**
 * What can be said of given patterns of a gradient, by element: those that the fixed order gives too; those that some other
 * order of the same additions gives; those of which that could not be decided; those that no order gives.
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
  /** Of dQ, dK and dV. */
  readonly format: FormatName;
  /** batch · kv heads. */
  readonly pieces: number;
  /** Every setting with its value. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** What its arithmetic rests on, a line each. */
  readonly evidence: readonly string[];
  readonly run: (piece: number) => BackwardPiece;
  /** Null where the order of all additions is fixed. */
  readonly someOrder: ((piece: number, given: BackwardPatterns) => OrderMatches) | null;
}

/** What the row sums D of a backward pass are made of: dO·O of the O that is stored, or Σ P dP of its own P and dP. */
export type DeltaSource = 'stored-output' | 'weights' | 'any';

/**
 * How a kernel computes gradients, as far as its bounds are to be narrower (or wider) than those of any correct fused
 * kernel: what is left out is as there.
 */
export interface GradientArithmetic {
  /** Whose it is. */
  readonly description: string;
  readonly delta?: DeltaSource;
  /** What the products of dO and O are rounded to before they are added, and what that sum is. */
  readonly deltaProducts?: FormatName;
  readonly deltaSums?: FormatName;
  /** What P and dS of a sink are rounded to before dSink adds them. */
  readonly sinkTerms?: FormatName;
  /** What P is rounded to before dV's product, and dS before those of dQ and dK. */
  readonly p?: FormatName;
  readonly ds?: FormatName;
  /** What scores and dP are written in on their way, and P before dS is made of it. */
  readonly scores?: FormatName;
  readonly dp?: FormatName;
  readonly weights?: FormatName;
  /** How often P and dS are rounded. */
  readonly pRoundings?: number;
  readonly dsRoundings?: number;
  /** What dK and dV of one query head are stored in before those of a group are added. */
  readonly partials?: FormatName;
  readonly scaleBeforeRounding?: boolean;
}

/** The backward pass of a kernel model. */
export interface BackwardModel {
  /** Beside those of the forward pass. */
  readonly settings: readonly KernelSetting[];
  /** What a problem may have beside q, k, v, scale, causal, window and softcap. */
  readonly features: readonly FeatureName[];
  /** Which problems it promises to take, where these are fewer than those of the forward pass. */
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
  /** Settings in which gradients of unknown origin are compared with it; the likelier of equals first. */
  readonly candidates: readonly Readonly<Record<string, string>>[];
}
