import type { FormatName } from '../../formats/index.js';
import type {
  DropoutArithmetic,
  OutputRounding,
  SharedMaximum,
  ValueTiles,
} from '../../../kernels/index.js';

/**
 * The coarsest arithmetic by which a kernel may compute one problem and still be called correct: the result
 * of `resolvePremises` for a declaration.
 */
export interface Premises {
  /** The kernels that these are of: "any correct kernel", or the same with the declarations. */
  readonly description: string;
  /** Whether nothing is declared, so that they are those of any correct kernel. */
  readonly isUsual: boolean;
  /**
   * Whether scores, weights or sums may leave the range of the format that they are declared to be kept in
   * where those of any correct kernel do not: nothing is promised about such an element, not even that it is
   * finite.
   */
  readonly isShortRange: boolean;
  /**
   * Error per product of Q·K, relative to the sum of magnitudes. An fp32 addition rounds by
   * 2^-24. A tensor core that fuses k products with the accumulator truncates k + 1 aligned terms to
   * F fraction bits of the largest and the result to 2^-23: ((k + 1)·2^-F + 2^-23) / k, at most
   * 1.375 · 2^-24 (Ampere, k = 8, F = 24). Hopper's fp8 accumulator (k = 32) keeps F = 13 fraction
   * bits in both: 34/32 · 2^-13. An accumulator of another format rounds by its unit roundoff.
   */
  readonly scoreAccumulation: number;
  /** The same where nothing is declared. */
  readonly usualAccumulation: number;
  /** The same of P·V, and of one addition to the row sum. */
  readonly accumulation: number;
  readonly rowSumAddition: number;
  /** Relative error in Σ |q||k| from roundings of Q and K with the scale; 0 where they enter exactly. */
  readonly operands: number;
  /** The magnitude below which numbers of Q and K lose as much as it does when they are rounded with the scale. */
  readonly smallestOperand: number;
  /** Relative error of one elementwise operation (scale, subtract, rescale, normalise). */
  readonly elementwise: number;
  /** The format that scores are written in; null where it is not shorter than that of sums. */
  readonly scores: FormatName | null;
  /** Relative error of a score from the format that scores are kept in, for each time that they are written. */
  readonly scoreRounding: number;
  /** Absolute error of a score that is subnormal in that format. */
  readonly scoreFloor: number;
  /** The magnitude from which on raw and scaled scores are beyond the range of the format that they are kept in. */
  readonly largestScore: number;
  /** The magnitude from which on scaled scores are outside of the kernel's promises. */
  readonly scoreLimit: number;
  /** The magnitude beyond which sums over keys, not yet divided by the row sum, may leave their range. */
  readonly largestSum: number;
  /**
   * Relative error of the kernel's exponential. 2^-13.4 admits a cubic polynomial (FlashAttention-4's
   * is off by 8.8e-5) beside the hardware unit (2 ulp of fp32).
   */
  readonly exponential: number;
  /**
   * Relative error of one factor that older sums are multiplied by when the maximum grows, which may be
   * once every `tileKeys` keys; null where factors are so good that `elementwise` counts them.
   */
  readonly factors: { readonly error: number; readonly tileKeys: number } | null;
  /** Absolute error of the logarithm behind the LSE. */
  readonly logarithm: number;
  /** Absolute error of an operation whose result is subnormal: flushed to zero, as GPUs may be told to do. */
  readonly underflow: number;
  /** The same for sums over keys and their partial results, in the format that they are kept in. */
  readonly sumUnderflow: number;
  /** Relative error of the softcap's tanh: `tanh.approx.f32` is within 2^-10.987 (PTX ISA). */
  readonly tanh: number;
  /** The format that P is rounded to. */
  readonly weightFormat: FormatName;
  /** The factor of P before that rounding, relative to the row's largest weight. */
  readonly weightScale: number;
  /** Whether the row sum adds weights after they are rounded. */
  readonly rowSumRounded: boolean;
  /** Relative error of a partial result of a split, as it is stored. */
  readonly partials: number;
  /** Sums P·V of their own for tiles of keys; null for none. */
  readonly valueTiles: ValueTiles | null;
  readonly maximum: SharedMaximum;
  readonly outputRounding: OutputRounding;
}

/** The premises that follow from the format of Q, K and V alone. */
type FormatPremises = Pick<
  Premises,
  'accumulation' | 'elementwise' | 'exponential' | 'logarithm' | 'underflow' | 'tanh'
>;

/** Relative error per product of sums in fp32: Ampere's tensor cores, see `Premises.scoreAccumulation`. */
export const fp32Accumulation = 1.375 * 2 ** -24;

const sixteenBit: FormatPremises = {
  accumulation: fp32Accumulation,
  elementwise: 2 ** -23,
  exponential: 2 ** -13.4,
  logarithm: 2 ** -21,
  underflow: 2 ** -126,
  tanh: 2 ** -10.9,
};

const eightBit: FormatPremises = { ...sixteenBit, accumulation: (34 / 32) * 2 ** -13 };

/**
 * The premises of the verdict, by the format of Q, K and V: those of "any correct kernel". Inputs enter
 * exactly, products accumulate in fp32 (fp64 for fp64 inputs), P is rounded to V's format and O to its own.
 */
export const premisesByFormat: Readonly<Record<FormatName, FormatPremises>> = {
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
  // No tensor core of Hopper takes this format.
  e2m1: sixteenBit,
};

/**
 * The format that a kernel works in: fp64 inputs with a shorter output are fp32 tensors that somebody
 * widened on the way to a file.
 */
export function workingFormat(input: FormatName, output: FormatName): FormatName {
  return input === 'fp64' && output !== 'fp64' ? 'fp32' : input;
}

/**
 * The error of all factors that a weight may be multiplied by, relative to it: one for every tile of keys but
 * the last; 0 where factors are so good that elementwise errors count them.
 */
export function factorsError(factors: Premises['factors'], keys: number): number {
  return factors === null ? 0 : Math.max(0, Math.ceil(keys / factors.tileKeys) - 1) * factors.error;
}

/**
 * The factor 1/(1 − p) of a p that is rounded, as is the difference, the reciprocal and the product with it; P is
 * rounded once, except by a framework, which writes what it computes: the weights, and those with the factor.
 */
export function anyDropout(
  probability: number,
  { elementwise, scoreRounding }: Premises,
): DropoutArithmetic {
  const ofProbability = probability / (1 - probability) / 2;
  return {
    roundings: scoreRounding > 0 ? 2 : 1,
    factor: elementwise * (2 + ofProbability),
  };
}
