import type * as fc from 'fast-check';
import type { AttentionReference } from '../../oracles/index.js';
import type {
  ByGradient,
  GradientAudit,
  Judgement,
  KernelOutputs,
  MeasuredGradients,
} from '../../src/audit/index.js';
import type { Tensor } from '../../src/formats/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import type { FeatureKind, ProblemConstraints, RegimeName } from '../problems/index.js';
import type {
  AttentionOutputs,
  FollowedOutputs,
  ProblemPromises,
  RunConditions,
  SharedGradients,
} from './kernel-under-test.js';

/** The strictness of a law: to the last bit, or within the bounds of rounding. */
export type LawStrength = 'bits' | 'bound';

/** One run of a kernel on one problem. */
export interface KernelRun {
  /** The promised configuration that ran; null for the kernel itself. */
  readonly configuration: string | null;
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly outputs: KernelOutputs;
  /** [batch, heads, queries, vDim] */
  readonly out: Float64Array;
  /** [batch, heads, queries], natural logarithm; null for a kernel without. */
  readonly lse: Float64Array | null;
}

/** One run of a kernel on a problem and the gradient of its output. */
export interface GradientRun extends KernelRun {
  /** The gradient of the output. */
  readonly dout: Tensor;
  /** dQ, dK and dV as the kernel gave them. */
  readonly tensors: ByGradient<Tensor>;
  /** The gradients of the bias and of the sinks, where the kernel gave them. */
  readonly shared: SharedGradients;
  /** dQ, dK and dV decoded, each in its canonical shape. */
  readonly gradients: ByGradient<Float64Array>;
}

/** Whether a run is one of gradients. */
export function isGradientRun(run: KernelRun): run is GradientRun {
  return 'gradients' in run;
}

/** Functions and facts that a law has at hand: to run the kernel and to judge its runs. */
export interface LawTools {
  readonly promises: ProblemPromises;
  readonly strength: LawStrength;
  /**
   * Runs the kernel.
   * @throws KernelFault when it throws, or its result is no output of the problem
   * @throws UnsupportedProblem
   */
  readonly run: (problem: Problem, conditions?: RunConditions) => Promise<KernelRun>;
  readonly runSplits: (problem: Problem, splits: number) => Promise<KernelRun>;
  /** Runs the kernel's merge on some results; the problem is the one whose outputs these are. */
  readonly merge: (
    problem: Problem,
    parts: readonly Required<AttentionOutputs>[],
  ) => Promise<KernelRun>;
  /** Runs the kernel and follows its values. */
  readonly follow: (
    problem: Problem,
  ) => Promise<{ readonly run: KernelRun; readonly meaning: FollowedOutputs }>;
  readonly runConfiguration: (name: string, problem: Problem) => Promise<KernelRun>;
  /**
   * Judges a run against the oracle, by the bounds that are promised.
   * @param reference the problem's exact attention, where it follows from that of another
   */
  readonly judge: (run: KernelRun, reference?: AttentionReference) => Judgement;
  /**
   * Runs the kernel for gradients.
   * @throws KernelFault as `run`, and where a gradient is missing or misshapen
   */
  readonly runGradients: (
    problem: Problem,
    dout: Tensor,
    conditions?: Pick<RunConditions, 'forward'>,
  ) => Promise<GradientRun>;
  /** Judges the gradients of a run by an audit: exact ones, with the bounds that are promised. */
  readonly judgeGradients: (run: GradientRun) => GradientAudit;
  /** Exact gradients, and the most that a correct kernel's may differ from them, whatever its forward pass stored. */
  readonly measureGradients: (run: GradientRun) => MeasuredGradients;
}

/** One problem to try a law on. */
export interface LawCase {
  readonly problem: Problem;
  /** The gradient of the output, for laws of gradients. */
  readonly dout?: Tensor | undefined;
  /** The index of the law's form, permutation or factor: a whole number below its `choices`. */
  readonly choice: number;
}

/** A law that every correct kernel obeys. */
export interface Law {
  /** The law, in a sentence. */
  readonly statement: string;
  /** The reason that a correct kernel obeys it, or the bugs that break it. */
  readonly reason: string;
  readonly strengths: readonly LawStrength[];
  /** The strength that a kernel promises by default. */
  readonly usual: LawStrength | 'none';
  /** Cases have a `choice` from 0 to this less one, shrunk toward 0. */
  readonly choices: number;
  /** Whether it is a law of gradients: its cases have a dout, and kernels promise it with `gradients`. */
  readonly ofGradients?: boolean;
  /** The reason that the law says nothing about such a kernel; null where it does. */
  readonly notFor?: (promises: ProblemPromises) => string | null;
  /** Constraints on its problems, beyond the promises. */
  readonly constraints?: ProblemConstraints;
  /**
   * Features that its problems must not have, since it says nothing about them (`packed`: sequences in
   * any form); default none.
   */
  readonly without?: readonly FeatureKind[];
  /** Regimes to try it in; default all. */
  readonly regimes?: readonly RegimeName[];
  /**
   * Problems of its own, in place of the regimes'.
   * @param drawn sizes to draw them at; null, the default, for the law's own
   */
  readonly problems?: (
    promises: ProblemPromises,
    drawn?: ProblemConstraints | null,
  ) => fc.Arbitrary<Problem>;
  /**
   * Tries the law on a case: the violation in a sentence, or null if the compared results are right.
   * @throws NotApplicable where the law says nothing about the problem, so that nothing was compared
   */
  readonly violation: (lawCase: LawCase, tools: LawTools) => Promise<string | null>;
}

/**
 * Error that a law throws for a problem about which it says nothing, such as a law of grouped heads on a
 * problem without: such a problem does not count as tried, and another one is drawn in its place. The
 * message says why, in a clause.
 */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}
