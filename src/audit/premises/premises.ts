import {
  formats,
  smallestNormal,
  smallestSubnormal,
  tensorPrecision,
  unitRoundoff,
  type Tensor,
  type FormatName,
} from '../../formats/index.js';
import {
  type AccumulatorFormat,
  type DropoutArithmetic,
  largestScore32,
  type OutputRounding,
  type PremiseDeclaration,
  type ScalePlace,
  type SharedMaximum,
} from '../../../kernels/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { describeDeclaration } from './premise-words.js';

/**
 * How coarsely a kernel may compute and still be called correct, for one problem: what
 * `resolvePremises` makes of a declaration.
 */
export interface Premises {
  /** Whose these are: "any correct kernel", or the same with what was declared. */
  readonly description: string;
  /** Whether nothing is declared: what any correct kernel may do. */
  readonly isUsual: boolean;
  /**
   * Whether scores, weights or sums may leave the range of what they are declared to be kept in where
   * those of any correct kernel do not: nothing is promised of such an element, nor that it is finite.
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
  /** Relative error that roundings of Q and K with the scale make in Σ |q||k|; 0 where they enter exactly. */
  readonly operands: number;
  /** Numbers of Q and K below this lose as much as it does when they are rounded with the scale. */
  readonly smallestOperand: number;
  /** Relative error of one elementwise operation (scale, subtract, rescale, normalise). */
  readonly elementwise: number;
  /** Relative error of a score from the format that scores are kept in, each time they are written. */
  readonly scoreRounding: number;
  /** Absolute error of a score that is subnormal in that format. */
  readonly scoreFloor: number;
  /** Raw and scaled scores from here on are beyond the range of what they are kept in. */
  readonly largestScore: number;
  /** Scaled scores from here on are none of the kernel's promises. */
  readonly scoreLimit: number;
  /** Sums over keys, not yet divided by the row sum, may leave their range beyond this. */
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
  /** Absolute error of an operation whose result is subnormal: flushed, as GPUs may be told to. */
  readonly underflow: number;
  /** The same of sums over keys and their partial results, in the format that they are kept in. */
  readonly sumUnderflow: number;
  /** Relative error of the softcap's tanh: `tanh.approx.f32` is within 2^-10.987 (PTX ISA). */
  readonly tanh: number;
  /** The format that P is rounded to. */
  readonly weightFormat: FormatName;
  /** What P is multiplied by before that, relative to the row's largest weight. */
  readonly weightScale: number;
  /** Whether the row sum adds weights after they are rounded. */
  readonly rowSumRounded: boolean;
  /** Relative error of a partial result of a split, as it is stored. */
  readonly partials: number;
  readonly maximum: SharedMaximum;
  readonly outputRounding: OutputRounding;
}

/** The premises that follow from the format of Q, K and V alone. */
type FormatPremises = Pick<
  Premises,
  'accumulation' | 'elementwise' | 'exponential' | 'logarithm' | 'underflow' | 'tanh'
>;

const sixteenBit: FormatPremises = {
  accumulation: 1.375 * 2 ** -24,
  elementwise: 2 ** -23,
  exponential: 2 ** -13.4,
  logarithm: 2 ** -21,
  underflow: 2 ** -126,
  tanh: 2 ** -10.9,
};

const eightBit: FormatPremises = { ...sixteenBit, accumulation: (34 / 32) * 2 ** -13 };

/**
 * The premises of the verdict, by the format of Q, K and V: what "any correct kernel" may do. Inputs
 * enter exactly, products accumulate in fp32 (fp64 for fp64 inputs), P is rounded to V's format and O
 * to its own.
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
  // No tensor core of Hopper takes it.
  e2m1: sixteenBit,
};

/**
 * The format that a kernel works in: fp64 inputs with a shorter output are fp32 tensors that somebody
 * widened on the way to a file.
 */
export function workingFormat(input: FormatName, output: FormatName): FormatName {
  return input === 'fp64' && output !== 'fp64' ? 'fp32' : input;
}

/** Sums over keys may leave the range of fp32 beyond this: a kernel may add weights of up to 2^24. */
const largestSum32 = 2 ** 102;

/** Keys of the smallest tile, after each of which the maximum may grow. */
const fewestTileKeys = 32;

/** What the named qualities of an exponential are off by, relative to its result. */
const exponentialErrors = {
  'correctly-rounded': 2 ** -24 * (1 + 2 ** -20),
  // ex2.approx on sm_90 silicon: 1.44e-7 over all inputs; the argument's own error is elementwise.
  hardware: 2 ** -22,
} as const;

/**
 * What P is multiplied by at least before it is rounded to a format, that its small weights stay: FlashAttention-3 and -4
 * take 2^8 (`max_offset`), FlashInfer the format's largest number, 448 of e4m3 (`p_scale`), and 240 is the largest of
 * another 8-bit format of AMD's. e5m2 reaches so far down that none is needed.
 */
const usualWeightScales: Readonly<Partial<Record<FormatName, number>>> = { e4m3: 2 ** 7 };

/** @throws RequestError for a factor that takes weights of 1 beyond the format */
function weightScaleOf(declared: number | undefined, weightFormat: FormatName): number {
  const { maxFinite } = formats[weightFormat];
  if (declared !== undefined && declared > maxFinite)
    throw new RequestError(
      `weightScale is ${declared}, but the largest number of ${weightFormat} is ${maxFinite}, so that the largest weights would saturate; give no more`,
    );
  return declared ?? usualWeightScales[weightFormat] ?? 1;
}

/** How many of the operands of Q·K are rounded once they hold the scale. */
const operandRoundings: Readonly<Record<ScalePlace, number>> = {
  scores: 0,
  'folded-log2e': 0,
  'q-after-rounding': 0,
  'q-before-rounding': 1,
  'root-of-both': 2,
};

/** How many times scores are written on their way: raw, scaled, less the maximum. */
const scoreWrites = 3;

function accumulatorError(format: AccumulatorFormat | undefined, usual: number): number {
  if (format === undefined) return usual;
  return format === 'fp32' ? sixteenBit.accumulation : unitRoundoff(formats[format]);
}

/** What a sum in a format loses at most where it is subnormal; 0 where the usual one is meant. */
function underflowOf(format: FormatName | undefined): number {
  return format === undefined || format === 'fp32' ? 0 : smallestSubnormal(formats[format]) / 2;
}

function exponentialError(declared: PremiseDeclaration['exponential'], usual: number): number {
  if (declared === undefined) return usual;
  return typeof declared === 'number' ? declared : exponentialErrors[declared];
}

/** Relative error of an element that is rounded once its factors are applied; 0 where that changes nothing. */
function dequantization(tensor: Tensor, format: FormatName): number {
  const isRounded =
    tensor.scales !== undefined && tensorPrecision(tensor) > formats[format].precision;
  return isRounded ? unitRoundoff(formats[format]) : 0;
}

/**
 * What a declaration comes to on a problem with an output in `output`: see `PremiseDeclaration`; what it
 * leaves open is as in `premisesByFormat`.
 */
export function resolvePremises(
  { q, k, v, scale }: Problem,
  output: FormatName,
  declared: PremiseDeclaration = {},
): Premises {
  const working = workingFormat(q.format, output);
  const usual = premisesByFormat[working];
  const named = (format: FormatName | 'input' | undefined) =>
    format === 'input' ? working : format;
  const scores = named(declared.scores);
  const stored = scores === undefined || scores === 'fp32' ? null : formats[scores];
  const dequantized = declared.dequantized ?? 'fp32';
  const times = operandRoundings[declared.scale ?? 'scores'];
  const operandFormat = formats[working];
  // Products with a factor below one are subnormal before the numbers are.
  const factor = Math.min(1, times === 2 ? Math.sqrt(Math.abs(scale)) : Math.abs(scale));
  const accumulators = [declared.qkAccumulator, declared.pvAccumulator] as const;
  const [forScores, forValues] = accumulators.map((name) => formats[name ?? 'fp32'].maxFinite) as [
    number,
    number,
  ];
  const weightFormat = named(declared.weights) ?? workingFormat(v.format, output);
  const exponential = exponentialError(declared.exponential, usual.exponential);
  const writes = stored === null ? 0 : scoreWrites;
  const usualScore = working === 'fp64' ? Infinity : largestScore32;
  const largestScore = Math.min(
    usualScore,
    ...[
      stored?.maxFinite ?? Infinity,
      declared.qkAccumulator === undefined ? Infinity : forScores,
    ].map((most) => most * (1 - 2 ** -6)),
  );
  const usualSum = weightFormat === 'fp64' ? Infinity : largestSum32;
  const largestSum = Math.min(
    usualSum,
    declared.pvAccumulator === undefined ? Infinity : forValues,
  );
  const maximum = declared.maximum ?? 'row';
  const scoreLimit = declared.scoreLimit ?? Infinity;
  return {
    ...usual,
    description: describeDeclaration(declared),
    isUsual: Object.values(declared).every((value) => value === undefined),
    isShortRange:
      largestScore < usualScore ||
      largestSum < usualSum ||
      scoreLimit < Infinity ||
      maximum !== 'row',
    usualAccumulation: usual.accumulation,
    scoreAccumulation: accumulatorError(declared.qkAccumulator, usual.accumulation),
    accumulation: accumulatorError(declared.pvAccumulator, usual.accumulation),
    // In fp32 where the sums P·V are at least that, whatever the usual sums of 8-bit formats are.
    rowSumAddition: Math.min(
      usual.accumulation,
      accumulatorError(declared.pvAccumulator, usual.accumulation),
    ),
    smallestOperand: Math.max(
      times === 0 ? 0 : smallestNormal(operandFormat) / factor,
      dequantization(q, dequantized) + dequantization(k, dequantized) === 0
        ? 0
        : smallestNormal(formats[dequantized]),
    ),
    sumUnderflow: Math.max(
      usual.underflow,
      underflowOf(declared.pvAccumulator),
      underflowOf(declared.partials),
      dequantization(v, dequantized) === 0 ? 0 : underflowOf(dequantized),
    ),
    operands:
      (times === 0 ? 1 : (1 + unitRoundoff(operandFormat)) ** times) *
        (1 + dequantization(q, dequantized)) *
        (1 + dequantization(k, dequantized)) -
      1,
    scoreRounding: stored === null ? 0 : unitRoundoff(stored) * (1 + 2 ** -6),
    // Raw scores are written before the scale.
    scoreFloor:
      (stored === null
        ? 0
        : writes * Math.max(1, Math.abs(scale)) * (smallestSubnormal(stored) / 2)) +
      q.shape.at(-1)! * Math.abs(scale) * underflowOf(declared.qkAccumulator),
    largestScore,
    scoreLimit,
    largestSum,
    exponential,
    factors:
      declared.factors === 'as-weights' ? { error: exponential, tileKeys: fewestTileKeys } : null,
    weightFormat,
    weightScale: weightScaleOf(declared.weightScale, weightFormat),
    rowSumRounded: declared.rowSum === 'after-rounding',
    // A rounding of V is one of each product p·v, and comes to as much as one of their sum at most.
    partials:
      (declared.partials === undefined ? 0 : unitRoundoff(formats[declared.partials])) +
      dequantization(v, dequantized),
    maximum,
    outputRounding: declared.outputRounding ?? 'nearest',
  };
}

/** The premises of any correct kernel for a problem's inputs and the format of the output. */
export function problemPremises(problem: Problem, output: FormatName): Premises {
  return resolvePremises(problem, output);
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
 * rounded once, but by a framework that writes what it computes: the weights, and those with the factor.
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
