import type { FormatName } from '../formats/index.js';
import type { Problem } from '../problem.js';

/** How coarsely a kernel may compute and still be called correct, for one input format. */
export interface Premises {
  /**
   * Error per product of a sum, relative to the sum of magnitudes. An fp32 addition rounds by
   * 2^-24. A tensor core that fuses k products with the accumulator truncates k + 1 aligned terms to
   * F fraction bits of the largest and the result to 2^-23: ((k + 1)·2^-F + 2^-23) / k, at most
   * 1.375 · 2^-24 (Ampere, k = 8, F = 24). Hopper's fp8 accumulator (k = 32) keeps F = 13 fraction
   * bits in both: 34/32 · 2^-13.
   */
  readonly accumulation: number;
  /** Relative error of one elementwise operation (scale, subtract, rescale, normalise). */
  readonly elementwise: number;
  /**
   * Relative error of the kernel's exponential. 2^-13.4 admits a cubic polynomial (FlashAttention-4's
   * is off by 8.8e-5) beside the hardware unit (2 ulp of fp32).
   */
  readonly exponential: number;
  /** Absolute error of the logarithm behind the LSE. */
  readonly logarithm: number;
  /** Absolute error of an operation whose result is subnormal: flushed, as GPUs may be told to. */
  readonly underflow: number;
  /** Relative error of the softcap's tanh: `tanh.approx.f32` is within 2^-10.987 (PTX ISA). */
  readonly tanh: number;
}

const sixteenBit: Premises = {
  accumulation: 1.375 * 2 ** -24,
  elementwise: 2 ** -23,
  exponential: 2 ** -13.4,
  logarithm: 2 ** -21,
  underflow: 2 ** -126,
  tanh: 2 ** -10.9,
};

const eightBit: Premises = { ...sixteenBit, accumulation: (34 / 32) * 2 ** -13 };

/**
 * The premises of the verdict, by the format of Q, K and V: what "any correct kernel" may do. Inputs
 * enter exactly, products accumulate in fp32 (fp64 for fp64 inputs), P is rounded to V's format and O
 * to its own.
 */
export const premisesByFormat: Readonly<Record<FormatName, Premises>> = {
  fp64: {
    accumulation: 2 ** -52,
    elementwise: 2 ** -52,
    exponential: 2 ** -51,
    logarithm: 2 ** -51,
    underflow: 2 ** -1022,
    tanh: 2 ** -51,
  },
  fp32: { ...sixteenBit, exponential: 2 ** -21 },
  tf32: { ...sixteenBit, exponential: 2 ** -21 },
  bf16: sixteenBit,
  fp16: sixteenBit,
  e4m3: eightBit,
  e5m2: eightBit,
};

/**
 * The format that a kernel works in: fp64 inputs with a shorter output are fp32 tensors that somebody
 * widened on the way to a file.
 */
export function workingFormat(input: FormatName, output: FormatName): FormatName {
  return input === 'fp64' && output !== 'fp64' ? 'fp32' : input;
}

/** The premises for a problem's inputs and the format of the output. */
export function problemPremises({ q }: Problem, output: FormatName): Premises {
  return premisesByFormat[workingFormat(q.format, output)];
}
