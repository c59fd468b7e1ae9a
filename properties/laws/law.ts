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
  ProblemPromises,
  RunConditions,
  SharedGradients,
} from './kernel-under-test.js';

/** How well a kernel obeys a law: to the last bit, or within what rounding explains. */
export type LawStrength = 'bits' | 'bound';

/** What a kernel made of one problem. */
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

/** What a kernel made of one problem and the gradient of its output. */
export interface GradientRun extends KernelRun {
  /** The gradient of the output. */
  readonly dout: Tensor;
  /** dQ, dK and dV as the kernel gave them. */
  readonly tensors: ByGradient<Tensor>;
  /** Those of the bias and of the sinks, where the kernel gave them. */
  readonly shared: SharedGradients;
  /** dQ, dK and dV decoded, each in its canonical shape. */
  readonly gradients: ByGradient<Float64Array>;
}

/** Whether a run is one of gradients. */
export function isGradientRun(run: KernelRun): run is GradientRun {
  return 'gradients' in run;
}

/** What a law may ask of the kernel and of the judges. */
export interface LawTools {
  readonly promises: ProblemPromises;
  readonly strength: LawStrength;
  /**
   * Runs the kernel.
   * @throws KernelFault when it throws, or gives what is no output of the problem
   * @throws UnsupportedProblem
   */
  readonly run: (problem: Problem, conditions?: RunConditions) => Promise<KernelRun>;
  /** The same of the kernel with a number of splits. */
  readonly runSplits: (problem: Problem, splits: number) => Promise<KernelRun>;
  /** What the kernel's merge makes of some results; the problem is the one whose outputs these are. */
  readonly merge: (
    problem: Problem,
    parts: readonly Required<AttentionOutputs>[],
  ) => Promise<KernelRun>;
  /** The same of one of the promised configurations. */
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
  /** Exact gradients, and how far those of a correct kernel may be from them, whatever its forward pass stored. */
  readonly measureGradients: (run: GradientRun) => MeasuredGradients;
}

/** One problem that a law is tried on. */
export interface LawCase {
  readonly problem: Problem;
  /** The gradient of the output, of laws of gradients. */
  readonly dout?: Tensor | undefined;
  /** Which of the law's forms, permutations, factors…: a whole number below its `choices`. */
  readonly choice: number;
}

/** A law that every correct kernel obeys. */
export interface Law {
  /** The law, in a sentence. */
  readonly statement: string;
  /** Why a correct kernel obeys it, or what breaks it. */
  readonly reason: string;
  /** The strengths that it has. */
  readonly strengths: readonly LawStrength[];
  /** What a kernel promises that says nothing. */
  readonly usual: LawStrength | 'none';
  /** Cases have a `choice` from 0 to this less one, shrunk toward 0. */
  readonly choices: number;
  /** Whether it is one of gradients: its cases have a dout, and kernels promise it with `gradients`. */
  readonly ofGradients?: boolean;
  /** Why the law says nothing of such a kernel; null where it does. */
  readonly notFor?: (promises: ProblemPromises) => string | null;
  /** What it asks of problems, beyond the promises. */
  readonly constraints?: ProblemConstraints;
  /** Features that its problems do not have, since it says nothing of them (`packed`: sequences in any form); default none. */
  readonly without?: readonly FeatureKind[];
  /** Regimes that it is tried in; default all. */
  readonly regimes?: readonly RegimeName[];
  /**
   * Problems of its own, in place of the regimes'.
   * @param drawn sizes to draw them at; null, and by default, the law's own
   */
  readonly problems?: (
    promises: ProblemPromises,
    drawn?: ProblemConstraints | null,
  ) => fc.Arbitrary<Problem>;
  /**
   * Tries the law on a case: what is violated, in a sentence, or null where what was compared is right.
   * @throws NotApplicable where the law says nothing of the problem, so that nothing was compared
   */
  readonly violation: (lawCase: LawCase, tools: LawTools) => Promise<string | null>;
}

/**
 * What a law throws on a problem of which it says nothing, such as that of grouped heads on one without:
 * such a problem does not count as tried, and another one is drawn in its place. The message says why,
 * in a clause.
 */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}
