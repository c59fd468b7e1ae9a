import type { GradientArithmetic } from '../../../../kernels/index.js';
import type { FormatName } from '../../../formats/index.js';
import type { Problem } from '../../../problem/index.js';
import { premisesByFormat, workingFormat } from '../../premises/premises.js';

/**
 * The source of a kernel's row sums D = Σ P dP: `stored-output` is dO·O with O as it is stored (FlashAttention,
 * cuDNN, CUTLASS, flex_attention), `weights` is Σ P dP with its own P and dP (a framework's softmax), `any` is either
 * of them.
 */
export type DeltaSource = 'stored-output' | 'weights' | 'any';

/**
 * The coarsest arithmetic by which a kernel may compute dQ, dK and dV and still be called correct. Errors are relative to a
 * result.
 */
export interface GradientPremises {
  /** The kernels that these are of, in words. */
  readonly description: string;
  /** Formats that P is rounded to before dV's product, and dS before those of dQ and dK. */
  readonly p: FormatName;
  readonly ds: FormatName;
  /** The format that O is stored in, for delta. */
  readonly o: FormatName;
  readonly delta: DeltaSource;
  /**
   * Formats that the products of dO and O are rounded to before they are added, and their sum; fp32 (fp64) where they are not
   * rounded.
   */
  readonly deltaProducts: FormatName;
  readonly deltaSums: FormatName;
  /**
   * The format that P and dS of a sink are rounded to before dSink adds them. `any` is the format of the inputs where D may be of a kernel's
   * own weights, as in a framework; where it is of the stored O, as in fused kernels, they are not rounded.
   */
  readonly sinkTerms: FormatName | 'any';
  /** Formats that scores and dP are written in on their way; fp32 (fp64 for fp64 inputs) where they are not. */
  readonly scores: FormatName;
  readonly dp: FormatName;
  /** The format that P is written in before dS is made of it. */
  readonly weights: FormatName;
  /** Number of roundings of P and dS to `p` and `ds`: one more where a factor multiplies a rounded number. */
  readonly pRoundings: number;
  readonly dsRoundings: number;
  /** The format that dK and dV of one query head are stored in before those of a group are added; `output` or wider. */
  readonly partials: FormatName;
  /** The format of dQ, dK and dV. */
  readonly output: FormatName;
  /** Whether the scale may multiply dS before it is rounded: its smallest numbers count in other units then. */
  readonly scaleBeforeRounding: boolean;
  /** Whether sums may cut off what they cannot hold, as tensor cores do, or round to nearest. */
  readonly sums: 'any' | 'nearest';
  /** Additions are in any order, atomics included. */
  readonly accumulate: 'any-order';
  /** Error per product of a sum, relative to the sum of magnitudes: `Premises.accumulation`. */
  readonly accumulation: number;
  /** Relative errors of one elementwise operation, and of the exponential. */
  readonly elementwise: number;
  readonly exponential: number;
  /** Errors of the softcap's tanh: a relative one, and an absolute one beside it. */
  readonly tanh: number;
  readonly tanhFloor: number;
  /** Absolute error of a result that is subnormal. */
  readonly underflow: number;
}

/**
 * The largest relative error of `tanh.approx.f32` is 1.113e-5, of all arguments: on sm_90 (the model in `src/hardware`, equal for all 2^32),
 * and on sm_75, the first that had the unit (N. Juffa, 2021). The PTX ISA promises 2^-11, which no unit needs.
 */
export const hardwareTanh = 2 ** -16.4;

/**
 * The absolute error in fp32 of a tanh made of an exponential, 2σ(2x) − 1 as in Triton's kernels: 2 ulp of a quotient below 1, an exponential
 * that is off by 2^-22 and one addition, twice.
 */
const sigmoidTanh = 2 ** -21;

/** A softcap's tanh as any correct kernel may have it: the hardware's, one made of an exponential, or a better one. */
function usualTanh(working: FormatName): Pick<GradientPremises, 'tanh' | 'tanhFloor'> {
  const { tanh, elementwise } = premisesByFormat[working];
  return working === 'fp64'
    ? { tanh, tanhFloor: 2 * elementwise }
    : { tanh: hardwareTanh, tanhFloor: sigmoidTanh };
}

/** The premises that follow from formats alone. */
function usual(problem: Problem, output: FormatName) {
  const working = workingFormat(problem.q.format, output);
  const { accumulation, elementwise, exponential, underflow } = premisesByFormat[working];
  return {
    working,
    wide: working === 'fp64' ? ('fp64' as const) : ('fp32' as const),
    arithmetic: { accumulation, elementwise, exponential, underflow, ...usualTanh(working) },
  };
}

/**
 * The widest premises of the fused kernels that are called correct: FlashAttention-2 to -4, cuDNN, CUTLASS (PyTorch's
 * "efficient"), flex_attention's Triton kernel, and PyTorch's "math", which computes 16-bit inputs in fp32. P and dS are rounded
 * once to the format of the inputs, all else is in fp32; FlashAttention-2 stores dK and dV of every query head of a group before
 * it adds them.
 * @param output the format of dQ, dK and dV
 */
export function anyGradientPremises(problem: Problem, output: FormatName): GradientPremises {
  const { working, wide, arithmetic } = usual(problem, output);
  return {
    description: 'any correct kernel',
    p: working,
    ds: working,
    o: output,
    delta: 'any',
    deltaProducts: wide,
    deltaSums: wide,
    sinkTerms: 'any',
    scores: wide,
    dp: wide,
    weights: working,
    pRoundings: 1,
    dsRoundings: 1,
    partials: output,
    output,
    scaleBeforeRounding: true,
    sums: 'any',
    accumulate: 'any-order',
    ...arithmetic,
  };
}

/**
 * Attention written out in a framework and differentiated by it, every result written in the format of the inputs: scores,
 * P, dP, dS, its product with the scale.
 */
export function eagerGradientPremises(problem: Problem, output: FormatName): GradientPremises {
  const { working } = usual(problem, output);
  return {
    ...anyGradientPremises(problem, output),
    description: 'attention written out in a framework',
    delta: 'weights',
    scores: working,
    dp: working,
    pRoundings: problem.dropout === undefined ? 1 : 2,
    // dS, and dS times the scale; with a softcap also the roundings of its tanh and of the division.
    dsRoundings: problem.softcap === null ? 2 : 4,
  };
}

/**
 * The premises of a kernel that declares how it computes gradients: those of any correct kernel, except for its
 * declarations.
 * @param output the format of dQ, dK and dV
 */
export function kernelGradientPremises(
  problem: Problem,
  output: FormatName,
  arithmetic: GradientArithmetic,
): GradientPremises {
  return { ...anyGradientPremises(problem, output), ...arithmetic };
}
