import type { FeatureKind } from '../problems/index.js';
import {
  gradientQuantities,
  sharedQuantities,
  type ByGradient,
  type GradientPremises,
  type GradientQuantityName,
  type JudgedGradientName,
  type KernelArithmetic,
  type KernelOutputs,
  type PremiseDeclaration,
} from '../../src/audit/index.js';
import type { FormatName, Tensor } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { ScaleKind, SizeMultiples, SizeName, SizeRange } from '../problems/index.js';

/** The outputs of a kernel for a problem; an LSE that is missing or null is not checked. */
export interface AttentionOutputs {
  readonly out: Tensor;
  readonly lse?: Tensor | null | undefined;
}

/**
 * Outputs with gradients, from a kernel that was asked for them: dq, dk and dv, and where it has them dbias, in the
 * bias's shape, and dsink, [query heads].
 */
export interface KernelResults
  extends
    AttentionOutputs,
    Readonly<Partial<Record<JudgedGradientName, Tensor | null | undefined>>> {}

/** The outputs that a forward pass stored for the backward pass. */
export interface StoredOutputs {
  readonly out: Tensor;
  /** Natural logarithm. */
  readonly lse: Tensor;
}

/** Conditions of a run, beside the problem. */
export interface RunConditions {
  /**
   * The gradient of the output, [batch, query heads, queries, vDim]; where it is given, the kernel must return dq, dk
   * and dv too.
   */
  readonly dout?: Tensor | undefined;
  /** Outputs for the backward pass to read in place of those of its own forward pass; for kernels that promise `readsForward`. */
  readonly forward?: StoredOutputs | undefined;
  /** The value that the adapter fills output buffers and scratch with before the run; any value if left out. */
  readonly fill?: number | undefined;
}

/** A kernel under test: the outputs of a problem, at once or later. */
export type AttentionKernel = (
  problem: Problem,
  conditions?: RunConditions,
) => KernelResults | Promise<KernelResults>;

/**
 * Error that a kernel throws for a problem that it does not take, such as a head dimension without a
 * code path: another problem is drawn in its place.
 */
export class UnsupportedProblem extends Error {
  override readonly name = 'UnsupportedProblem';
}

/**
 * Error for a kernel that failed to compute: it threw, ended, gave no answer or no tensor of the
 * problem's shape. The message says so in a clause.
 */
export class KernelFault extends Error {
  override readonly name = 'KernelFault';
  /**
   * Whether it took as long as a kernel is given at most, as silence does: then the problem is not
   * simplified, since each simpler one that fails as well would take as long.
   */
  readonly isSlow: boolean;

  constructor(message: string, { isSlow = false }: { readonly isSlow?: boolean } = {}) {
    super(message);
    this.isSlow = isSlow;
  }
}

/** Error that a kernel throws when it cannot be run at all: it says nothing about the kernel, and ends the check. */
export class KernelAbsent extends RequestError {}

/** Whether a value looks like a tensor: it has data and a shape. */
export function isTensor(value: unknown): value is Tensor {
  return typeof value === 'object' && value !== null && 'data' in value && 'shape' in value;
}

/**
 * The outputs of a kernel, checked to be tensors.
 * @throws RequestError when it is anything else
 */
export function kernelOutputs(outputs: AttentionOutputs): KernelOutputs {
  const { out, lse = null } = (outputs ?? {}) as Partial<AttentionOutputs>;
  if (!isTensor(out) || !(lse === null || isTensor(lse)))
    throw new RequestError(
      'the outputs are not { out: Tensor, lse?: Tensor | null }; pass what the kernel wrote, with format, shape and data',
    );
  return { out, lse };
}

/** Gradients of tensors that all heads share; a kernel may leave them out. */
export type SharedGradients = Readonly<
  Partial<Record<Exclude<JudgedGradientName, GradientQuantityName>, Tensor>>
>;

/**
 * The gradients of the bias and of the sinks that a kernel wrote; none for a bias or sinks that the
 * problem lacks.
 * @throws KernelFault for one that is no tensor
 */
export function sharedGradients({ bias, sink }: Problem, outputs: KernelResults): SharedGradients {
  const has = { dbias: bias !== undefined, dsink: sink !== undefined };
  const given = sharedQuantities.flatMap(({ name, prose }) => {
    const tensor = outputs[name];
    if (!has[name] || tensor === undefined || tensor === null) return [];
    if (!isTensor(tensor)) throw new KernelFault(`the kernel gave ${prose} that is no tensor`);
    return [[name, tensor] as const];
  });
  return Object.fromEntries(given);
}

/**
 * The gradients that a kernel wrote.
 * @throws KernelFault where one is missing, or is no tensor
 */
export function kernelGradients(outputs: KernelResults): ByGradient<Tensor> {
  const given = gradientQuantities.map(({ name, prose }) => {
    const tensor = outputs[name];
    if (!isTensor(tensor))
      throw new KernelFault(`the kernel gave no ${prose} (${name}), though it promises gradients`);
    return [name, tensor] as const;
  });
  return Object.fromEntries(given) as unknown as ByGradient<Tensor>;
}

/** The largest scores that a kernel promises to take. */
export interface ScoreLimit {
  /** Limit of |q·k|. */
  readonly raw: number;
  /** Limit of |scale · q·k|, before a softcap. */
  readonly scaled: number;
}

/** The kernel in other settings. */
export interface KernelConfiguration {
  readonly kernel: AttentionKernel;
  /** The arithmetic of the kernel in these settings; default that of any correct kernel. */
  readonly arithmetic?: ((problem: Problem) => KernelArithmetic | null) | undefined;
}

/** The kernel with its keys cut into a number of splits, whose results it combines. */
export interface SplitRunner {
  /** Numbers of splits that it takes, which may include 1. */
  readonly counts: readonly number[];
  readonly kernel: (problem: Problem, splits: number) => ReturnType<AttentionKernel>;
}

/** Puts results of parts of the keys together by their LSEs: outputs of one shape, each with its LSE. */
export type ResultMerger = (
  parts: readonly Required<AttentionOutputs>[],
) => AttentionOutputs | Promise<AttentionOutputs>;

/** What following the values of a run says of a claim: proven where both are empty. */
export interface MeaningClaim {
  /** What refutes it, a clause each. */
  readonly refuted: readonly string[];
  /** The reasons that nothing can be said, a clause each. */
  readonly unknown: readonly string[];
}

/** The outputs of a run whose values were followed, and what that proves. */
export interface FollowedOutputs {
  readonly outputs: AttentionOutputs;
  /** Whether the real values are the problem's attention. */
  readonly means: MeaningClaim;
  /** Whether nothing reaches a row with weight that it must not see. */
  readonly unreached: MeaningClaim;
  /**
   * The expressions of the elements of O, [batch, heads, queries, vDim], and of the LSE by numbers: where they are equal, in whichever
   * runs of the kernel, the bits are the same for all inputs that decide alike. NaN where nothing is known.
   */
  readonly expressions: () => {
    readonly out: Float64Array;
    readonly lse: Float64Array | null;
  };
}

/** Runs a kernel and follows its values. */
export type ValueFollower = (problem: Problem) => Promise<FollowedOutputs>;

/**
 * Promises of a kernel about the problems that it takes and about its arithmetic, with every default filled
 * in: all that a law may know of a kernel.
 */
export interface ProblemPromises {
  readonly formats: readonly FormatName[];
  readonly causal: boolean | 'only';
  readonly window: boolean;
  readonly softcap: boolean;
  readonly features: readonly FeatureKind[];
  readonly groupedHeads: boolean;
  readonly emptyRows: boolean;
  readonly scales: readonly ScaleKind[];
  readonly specialValues: boolean;
  readonly lse: boolean;
  readonly dims: readonly number[] | null;
  readonly sizes: Readonly<Partial<Record<SizeName, SizeRange>>>;
  readonly blockKeys: number;
  readonly rescaleThreshold: number;
  readonly scoreLimit: ScoreLimit;
  /** Premises of the kernel on a problem, or on every problem for null. */
  readonly premises: (problem: Problem | null) => PremiseDeclaration;
  /** Whether the check reports no other premises under which a failing output would pass. */
  readonly strictPremises: boolean;
  readonly arithmetic: (problem: Problem) => KernelArithmetic | null;
  readonly configurations: Readonly<Record<string, KernelConfiguration>>;
  readonly groupSizes: readonly number[] | null;
  readonly fillsBuffers: boolean;
  readonly splits: SplitRunner | null;
  readonly merge: ResultMerger | null;
  readonly follow: ValueFollower | null;
  readonly multiples: SizeMultiples;
  readonly gradients: boolean;
  readonly deterministic: boolean;
  readonly readsForward: boolean;
  /** The arithmetic of its gradients of a format on a problem; null for that of any correct kernel. */
  readonly gradientPremises: (problem: Problem, output: FormatName) => GradientPremises | null;
}
