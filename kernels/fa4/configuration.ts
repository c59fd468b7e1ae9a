import {
  architectures,
  blackwellOf,
  findTensorCoreArithmetic,
  type PairConversionName,
  type TensorCoreArithmetic,
} from '../../src/hardware/index.js';
import { type InputFormat, type OutFormat, roundingConversions } from '../online-softmax/units.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { exp2Coefficients, type PolynomialDegree } from '../online-softmax/exp2-polynomial.js';
import { choiceValue } from '../setting-values.js';
import { exp2Pattern, type Exp2Pattern } from './exp2-tuning.js';
import { checkFa4Features, kernelMask } from './features.js';
import { ctasOf, packsGroups, queryLengths } from './thread-blocks.js';

/** The formats that Q, K and V may have; all three have the same. */
export type Fa4Format = InputFormat;

/** The formats that the output may have. */
export type Fa4OutFormat = OutFormat;

/** The kernel's treatment of inputs of a format. */
interface Fa4FormatRule {
  readonly bits: 16 | 8;
  /** Conversion that rounds P for its product with V. */
  readonly weightConversion: PairConversionName;
  readonly outFormat: Fa4OutFormat;
  /** log2 of the factor by which a row's maximum may grow before its sums are rescaled; 0: always. */
  readonly rescaleThreshold: number;
  /** Added to every exponent, so that P uses the range of its format. */
  readonly maxOffset: number;
}

const sixteenBit = { bits: 16, rescaleThreshold: 8, maxOffset: 0 } as const;
const eightBit = { bits: 8, rescaleThreshold: 0, maxOffset: 8, outFormat: 'bf16' } as const;

/**
 * FlashAttention-4's treatment of each input format. Source: `rescale_threshold` and `max_offset` in
 * flash_attn/cute/flash_fwd_sm100.py, the output's type in interface.py of Dao-AILab/flash-attention
 * (commit 0251105a, August 2026).
 */
export const fa4Formats: Readonly<Record<Fa4Format, Fa4FormatRule>> = {
  bf16: { ...sixteenBit, outFormat: 'bf16', weightConversion: roundingConversions.bf16 },
  fp16: { ...sixteenBit, outFormat: 'fp16', weightConversion: roundingConversions.fp16 },
  e4m3: { ...eightBit, weightConversion: roundingConversions.e4m3 },
  e5m2: { ...eightBit, weightConversion: roundingConversions.e5m2 },
};

/** Whether the kernel takes inputs of a format. */
function isFa4Format(format: string): format is Fa4Format {
  return Object.hasOwn(fa4Formats, format);
}

/** The GPUs whose instructions are modelled. */
export const fa4Architectures = ['sm_90', 'sm_100', 'sm_103', 'sm_110'] as const;
/** A GPU whose instructions the model has. */
export type Fa4Architecture = (typeof fa4Architectures)[number];

/** The architecture of a name. @throws RequestError for one that the forward does not have, or has another kernel for */
export function fa4ArchitectureOf(name: string): Fa4Architecture {
  if (name === 'sm_120')
    throw new RequestError(
      `FlashAttention-4 has another kernel for sm_120 (flash_fwd_sm120.py, by mma.sync), which is not modelled; give ${fa4Architectures.join(', ')}`,
    );
  return choiceValue('architecture', name, fa4Architectures);
}

/** Divisors of fp8 inputs at their quantisation, one number each for all heads. */
export interface Descale {
  readonly q: number;
  readonly k: number;
  readonly v: number;
}

/** Every choice of FlashAttention-4's forward that changes its bits. */
export interface Fa4Configuration {
  /** sm_90 runs the same operations with Hopper's tensor cores, as the captures here were made. */
  readonly architecture: Fa4Architecture;
  readonly exp2: Exp2Pattern & { readonly degree: PolynomialDegree };
  /** log2 of the factor by which a row's maximum may grow before its sums are rescaled; 0: always. */
  readonly rescaleThreshold: number;
  /** Added to every exponent, so that weights reach 2^maxOffset. */
  readonly maxOffset: number;
  /**
   * Whether the LSE's m·c + log2(l) is one fused multiply-add, as the compiled kernel has it (flash-attn-4 4.0.0b36, sm_100a);
   * default for Blackwell.
   */
  readonly lseFused: boolean;
  readonly blockKeys: number;
  /** The format that the output is rounded to. */
  readonly outFormat: Fa4OutFormat;
  /** 1 for each unless inputs are fp8. */
  readonly descale: Descale;
  /** Parts that the keys are split into and whose results are combined; 1: not split. */
  readonly splits: number;
  /** Whether query heads of a group share tiles, which decides the columns that software computes and nothing else. */
  readonly packGqa: boolean;
}

/** Choices that differ from FlashAttention-4's; for exp2 and descale any member. */
export interface Fa4Overrides extends Partial<Omit<Fa4Configuration, 'exp2' | 'descale'>> {
  readonly exp2?: Partial<Fa4Configuration['exp2']>;
  readonly descale?: Partial<Descale>;
}

const blockKeys = 128;
/** The most splits that FlashAttention-4's combine takes. Source: flash_fwd_combine.py. */
const mostSplits = 256;
/** The inputs' format. @throws RequestError for formats and sizes that the kernel has no path for */
function supportedFormat(problem: Problem, { qkDim, vDim }: ProblemShape): Fa4Format {
  const { q, k, v } = problem;
  for (const [name, { format }] of Object.entries({ q, k, v })) {
    if (!isFa4Format(format))
      throw new RequestError(
        `${name} is ${format}; the fa4 model takes ${Object.keys(fa4Formats).join(', ')}`,
      );
    if (format !== q.format)
      throw new RequestError(`q is ${q.format} but ${name} is ${format}; make them equal`);
  }
  for (const [name, dim] of Object.entries({ qk: qkDim, v: vDim }))
    if (!(dim >= 1 && dim <= 256))
      throw new RequestError(`${name} head dimension ${dim}; the fa4 model takes 1 to 256`);
  return q.format as Fa4Format;
}

/**
 * The configuration that FlashAttention-4 would run the problem in on the architecture (sm_90, which it has
 * no tuning for, as sm_100), with the choices of `overrides`.
 *
 * @throws RequestError for a problem that the kernel does not take: formats other than bf16, fp16, e4m3 and
 *   e5m2, head dimensions beyond 256, features without a path; and for a configuration out of range.
 */
export function fa4Configuration(
  problem: Problem,
  shape: ProblemShape,
  overrides: Fa4Overrides = {},
): Fa4Configuration {
  const format = supportedFormat(problem, shape);
  checkFa4Features(problem, shape);
  const { bits, rescaleThreshold, maxOffset, outFormat } = fa4Formats[format];
  const architecture = overrides.architecture ?? 'sm_100';
  if (architecture === 'sm_110' && bits === 8)
    throw new RequestError(
      `q is ${format}; FlashAttention-4 takes fp8 on compute capability 10 alone, so give sm_100 or sm_103`,
    );
  const { splits = 1, packGqa = packsGroups(problem, shape) } = overrides;
  const pattern = exp2Pattern({
    headDim: shape.qkDim,
    ...kernelMask(problem),
    ctas: ctasOf(problem, shape, { splits, packGqa }),
    architecture: blackwellOf(architecture),
    inputBits: bits,
    packedGroups: packGqa,
    variableLength: queryLengths(problem, shape).kind !== 'equal',
  });
  const configuration: Fa4Configuration = {
    architecture,
    rescaleThreshold,
    maxOffset,
    // As the kernel is compiled for Blackwell; the captures on Hopper round twice.
    lseFused: architecture !== 'sm_90',
    blockKeys,
    outFormat,
    splits,
    packGqa,
    ...overrides,
    exp2: { ...pattern, degree: 3, ...overrides.exp2 },
    descale: { q: 1, k: 1, v: 1, ...overrides.descale },
  };
  checkConfiguration(configuration, format);
  return configuration;
}

function checkConfiguration(configuration: Fa4Configuration, format: Fa4Format): void {
  const { exp2, rescaleThreshold, maxOffset, blockKeys, descale, splits } = configuration;
  const whole = (name: string, value: number, least: number, most: number): void => {
    if (!(Number.isInteger(value) && value >= least && value <= most))
      throw new RequestError(`${name} is ${value}; give a whole number from ${least} to ${most}`);
  };
  whole('exp2.frequency', exp2.frequency, 0, 128);
  whole('exp2.reserve', exp2.reserve, 0, 128);
  whole('exp2.startFragment', exp2.startFragment, 0, 8);
  if (!Object.hasOwn(exp2Coefficients, exp2.degree))
    throw new RequestError(`exp2.degree is ${exp2.degree}; give 1 to 5`);
  if (!(rescaleThreshold >= 0))
    throw new RequestError(`rescale.threshold is ${rescaleThreshold}; give a number from 0 on`);
  if (!(Math.abs(maxOffset) <= 64))
    throw new RequestError(`maxOffset is ${maxOffset}; give a number from -64 to 64`);
  whole('blockKeys', blockKeys, 32, 256);
  if (blockKeys % 32 !== 0)
    throw new RequestError(`blockKeys is ${blockKeys}; give a multiple of 32`);
  whole('splits', splits, 1, mostSplits);
  for (const [name, value] of Object.entries(descale)) {
    if (!(Math.fround(value) > 0 && Math.fround(value) < Infinity))
      throw new RequestError(`descale.${name} is ${value}; give a positive fp32 number`);
    if (value !== 1 && fa4Formats[format].bits === 16)
      throw new RequestError(`descale.${name} is ${value}; only fp8 has it: leave it out`);
  }
}

/**
 * The scale of the exponents, as the kernel has it: softmax scale · log2 e, a product of two fp32 numbers that is rounded, times the
 * fp32 product of the descales of Q and K, rounded. Sources: `compute_softmax_scale_log2` in utils.py, as its compiled host code
 * calculates it (4.0.0b36), and `_load_effective_descales` in flash_fwd_sm100.py.
 */
export function exponentScale(softmaxScale: number, { descale }: Fa4Configuration): number {
  const { fround } = Math;
  const descaled = fround(fround(descale.q) * fround(descale.k));
  return fround(fround(fround(softmaxScale) * fround(Math.LOG2E)) * descaled);
}

/**
 * The arithmetic of both matrix products for inputs of the format.
 * @throws RequestError when the architecture's instruction does not take the format
 */
export function fa4TensorCore(
  architecture: Fa4Architecture,
  format: Fa4Format,
): TensorCoreArithmetic {
  return findTensorCoreArithmetic({
    instruction: architectures[architecture].tensorCore,
    architecture,
    a: format,
  });
}
