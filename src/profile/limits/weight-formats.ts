import { decode, formats } from '../../formats/index.js';
import { createConversionArray, type PairConversionName } from '../../hardware/index.js';
import type { ArrayFunction } from '../../simd/index.js';
import type { CandidateName } from '../functions.js';
import { bitsOfOrdinal, ordinalOfValue, valueOfOrdinal } from '../float32-order.js';

/** A format that the weights P are rounded to for the product with V. */
export type WeightFormat = 'bf16' | 'fp16' | 'e4m3' | 'e5m2';

/** The conversion of P to a format, and its treatment of values that the format cannot hold. */
export interface WeightConversion {
  readonly format: WeightFormat;
  readonly instruction: PairConversionName;
  /** `infinite`: P becomes infinite, and O with it; `clamped`: the largest finite number. */
  readonly overflow: 'infinite' | 'clamped';
}

/**
 * The conversions of P. PTX has no conversion from fp32 to an 8-bit format without saturation (PTX ISA,
 * `cvt`); those to 16 bits are FlashAttention-4's, which do not saturate.
 */
export const weightConversions: Readonly<Record<WeightFormat, WeightConversion>> = {
  bf16: { format: 'bf16', instruction: 'cvt.rn.bf16x2.f32', overflow: 'infinite' },
  fp16: { format: 'fp16', instruction: 'cvt.rn.f16x2.f32', overflow: 'infinite' },
  e4m3: { format: 'e4m3', instruction: 'cvt.rn.satfinite.e4m3x2.f32', overflow: 'clamped' },
  e5m2: { format: 'e5m2', instruction: 'cvt.rn.satfinite.e5m2x2.f32', overflow: 'clamped' },
};

/** Every format of weights. */
export const weightFormats = Object.keys(weightConversions) as WeightFormat[];

/** log2 of the largest finite number of a format of weights. */
export function largestWeightExponent(format: WeightFormat): number {
  return Math.log2(formats[format].maxFinite);
}

/**
 * Half an ulp of the largest finite number: a weight may exceed that number by this amount and lose
 * no more by rounding than any other weight.
 */
export function largestRoundingExcess(format: WeightFormat): number {
  const { maxExponent, precision } = formats[format];
  return 2 ** (maxExponent - precision);
}

/** The largest exponents x whose weight P = exp2(x) a format still holds; fp32 numbers. */
interface ExponentLimit {
  readonly format: WeightFormat;
  readonly name: CandidateName;
  /** For this x and all below, P in fp32 is at most the format's largest finite number. */
  readonly largestFinite: number;
  /**
   * For this x and all below, the converted P is off by half an ulp at most: neither infinite nor cut
   * by more than rounding would.
   */
  readonly largestRounded: number;
}

/**
 * Half-width of the window searched around a limit, in log2. Every exp2 here has a relative error
 * below 4.1 % (the polynomial of degree 1; `flashproof profile exp2` sweeps all inputs), which is
 * 0.06 in log2: below the window every weight fits, above it none does.
 */
const margin = 1 / 16;

/**
 * The limits for one exp2 and one format, by evaluating the models of exp2 and of the conversion at
 * every fp32 x from 1/16 below log2 of the format's largest finite number to 1/16 above log2 of the
 * largest number that still rounds to it, so that monotonicity is not assumed.
 * @param evaluate the exp2 on arrays of fp32 bit patterns
 */
export function exponentLimit(
  format: WeightFormat,
  name: CandidateName,
  evaluate: ArrayFunction,
): ExponentLimit {
  const target = formats[format];
  const excess = largestRoundingExcess(format);
  const first = ordinalOfValue(Math.fround(Math.log2(target.maxFinite) - margin));
  const last = ordinalOfValue(Math.fround(Math.log2(target.maxFinite + excess) + margin));
  const inputs = Uint32Array.from({ length: last - first + 1 }, (_, i) => bitsOfOrdinal(first + i));
  const weightBits = new Uint32Array(inputs.length);
  const weights = new Float32Array(weightBits.buffer);
  const converted = new Uint32Array(inputs.length);
  evaluate(inputs, weightBits);
  createConversionArray(weightConversions[format].instruction)(weightBits, converted);
  const isFinite = (i: number): boolean => weights[i] <= target.maxFinite;
  const isRounded = (i: number): boolean =>
    Math.abs(decode(target, converted[i]) - weights[i]) <= excess;
  const lastThat = (holds: (i: number) => boolean): number => {
    const failure = inputs.findIndex((_, i) => !holds(i));
    return valueOfOrdinal(first + failure - 1);
  };
  return {
    format,
    name,
    largestFinite: lastThat(isFinite),
    largestRounded: lastThat(isRounded),
  };
}
