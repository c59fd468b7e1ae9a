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

/** What a kernel made of a problem; an LSE that is missing or null is not checked. */
export interface AttentionOutputs {
  readonly out: Tensor;
  readonly lse?: Tensor | null | undefined;
}

/**
 * The same with gradients, of a kernel that was asked for them: dq, dk and dv, and where it has them dbias, in the bias's shape,
 * and dsink, [query heads].
 */
export interface KernelResults
  extends
    AttentionOutputs,
    Readonly<Partial<Record<JudgedGradientName, Tensor | null | undefined>>> {}

/** What a forward pass stored for the backward pass. */
export interface StoredOutputs {
  readonly out: Tensor;
  /** Natural logarithm. */
  readonly lse: Tensor;
}

/** How a kernel is to be run, beside the problem. */
export interface RunConditions {
  /**
   * The gradient of the output, [batch, query heads, queries, vDim]: where it is given the kernel is to give dq, dk and dv
   * as well.
   */
  readonly dout?: Tensor | undefined;
  /** What its backward pass is to read in place of what its own forward pass stores; of kernels that promise `readsForward`. */
  readonly forward?: StoredOutputs | undefined;
  /** What its adapter is to fill output buffers and scratch with before; left out: as it likes. */
  readonly fill?: number | undefined;
}

/** A kernel under test: the outputs of a problem, at once or later. */
export type AttentionKernel = (
  problem: Problem,
  conditions?: RunConditions,
) => KernelResults | Promise<KernelResults>;

/**
 * What a kernel throws for a problem that it does not take, such as a head dimension without a code
 * path: another problem is drawn in its place.
 */
export class UnsupportedProblem extends Error {
  override readonly name = 'UnsupportedProblem';
}

/**
 * A kernel did something else than compute: it threw, ended, gave no answer or no tensor of the
 * problem's shape. The message says what, in a clause.
 */
export class KernelFault extends Error {
  override readonly name = 'KernelFault';
  /**
   * Whether it took as long as a kernel is given at most, as silence does: then no simpler problem is
   * looked for, since each that fails as well would take as long.
   */
  readonly isSlow: boolean;

  constructor(message: string, { isSlow = false }: { readonly isSlow?: boolean } = {}) {
    super(message);
    this.isSlow = isSlow;
  }
}

/** What a kernel throws that cannot be run at all: it says nothing about the kernel, and ends what tries it. */
export class KernelAbsent extends RequestError {}

/** Whether a value looks like a tensor: it has data and a shape. */
export function isTensor(value: unknown): value is Tensor {
  return typeof value === 'object' && value !== null && 'data' in value && 'shape' in value;
}

/**
 * What a kernel wrote, checked to be tensors.
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

/** Gradients of what all heads share, which a kernel gives or not. */
export type SharedGradients = Readonly<
  Partial<Record<Exclude<JudgedGradientName, GradientQuantityName>, Tensor>>
>;

/**
 * The gradients of the bias and of the sinks that a kernel wrote; none of what the problem has not.
 * @throws KernelFault for what is no tensor
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
 * @throws KernelFault where one is missing, or no tensor
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

/** How large scores may be that a kernel promises to take. */
export interface ScoreLimit {
  /** Of |q·k|. */
  readonly raw: number;
  /** Of |scale · q·k|, before a softcap. */
  readonly scaled: number;
}

/** The kernel in other settings. */
export interface KernelConfiguration {
  readonly kernel: AttentionKernel;
  /** How it computes then; default as any correct kernel may. */
  readonly arithmetic?: ((problem: Problem) => KernelArithmetic | null) | undefined;
}

/** The kernel with its keys cut in so many splits, whose results it puts together. */
export interface SplitRunner {
  /** Numbers of splits that it takes, 1 among them or not. */
  readonly counts: readonly number[];
  readonly kernel: (problem: Problem, splits: number) => ReturnType<AttentionKernel>;
}

/** Puts results of parts of the keys together by their LSEs: outputs of one shape, each with its LSE. */
export type ResultMerger = (
  parts: readonly Required<AttentionOutputs>[],
) => AttentionOutputs | Promise<AttentionOutputs>;

/**
 * What a kernel promises of the problems that it takes and of how it computes, with every default filled in:
 * all that a law may know of a kernel.
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
  /** Of a problem, or of the kernel whatever the problem. */
  readonly premises: (problem: Problem | null) => PremiseDeclaration;
  /** Whether no other premises are told by which a failure would pass. */
  readonly strictPremises: boolean;
  readonly arithmetic: (problem: Problem) => KernelArithmetic | null;
  readonly configurations: Readonly<Record<string, KernelConfiguration>>;
  readonly groupSizes: readonly number[] | null;
  readonly fillsBuffers: boolean;
  readonly splits: SplitRunner | null;
  readonly merge: ResultMerger | null;
  readonly multiples: SizeMultiples;
  readonly gradients: boolean;
  readonly deterministic: boolean;
  readonly readsForward: boolean;
  /** How it computes gradients of a format on a problem; null as any correct kernel may. */
  readonly gradientPremises: (problem: Problem, output: FormatName) => GradientPremises | null;
}
