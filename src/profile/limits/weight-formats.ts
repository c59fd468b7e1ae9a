import { formats } from '../../formats/index.js';
import type { PairConversionName } from '../../hardware/index.js';

/** A format that the weights P are rounded to for the product with V. */
export type WeightFormat = 'bf16' | 'fp16' | 'e4m3' | 'e5m2';

/** How P is converted, and what becomes of what the format cannot hold. */
export interface WeightConversion {
  readonly format: WeightFormat;
  readonly instruction: PairConversionName;
  /** `infinite`: P becomes infinite, and O with it; `clamped`: the largest finite number. */
  readonly overflow: 'infinite' | 'clamped';
}

/**
 * The conversions of P. PTX has none from fp32 to an 8-bit format that does not saturate (PTX ISA, `cvt`);
 * those to 16 bits are FlashAttention-4's, which do not.
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

/** Half an ulp of the largest finite number: by so much a weight may exceed it and lose no more than
 * any other weight by rounding. */
export function largestRoundingExcess(format: WeightFormat): number {
  const { maxExponent, precision } = formats[format];
  return 2 ** (maxExponent - precision);
}
