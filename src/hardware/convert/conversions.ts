import { modelConversion } from './conversion.js';
import type { Conversion, ConversionRule } from './conversion.js';

/** The conversions of two fp32 operands to one word that holds both results. */
export type PairConversionName =
  | 'cvt.rn.bf16x2.f32'
  | 'cvt.rz.bf16x2.f32'
  | 'cvt.rn.satfinite.bf16x2.f32'
  | 'cvt.rz.satfinite.bf16x2.f32'
  | 'cvt.rn.f16x2.f32'
  | 'cvt.rz.f16x2.f32'
  | 'cvt.rn.satfinite.f16x2.f32'
  | 'cvt.rz.satfinite.f16x2.f32'
  | 'cvt.rn.satfinite.e4m3x2.f32'
  | 'cvt.rn.satfinite.e5m2x2.f32';

/** The conversions of one word that holds two numbers to one that holds both results. */
export type PackedConversionName =
  | 'cvt.rn.satfinite.e4m3x2.f16x2'
  | 'cvt.rn.satfinite.e5m2x2.f16x2'
  | 'cvt.rn.f16x2.e4m3x2'
  | 'cvt.rn.f16x2.e5m2x2';

/** The conversions of one number. */
export type SingleConversionName = 'cvt.f32.f16' | 'cvt.f32.bf16';

/** The modelled conversions, as PTX spells them. */
export type ConversionName = PairConversionName | PackedConversionName | SingleConversionName;

const rn: ConversionRule = { rounding: 'nearest-even', overflow: 'overflow', nan: 'canonical' };
const rz: ConversionRule = { ...rn, rounding: 'toward-zero' };
const rnSatfinite: ConversionRule = { ...rn, overflow: 'saturate' };
const rzSatfinite: ConversionRule = { ...rz, overflow: 'saturate' };
const exact: ConversionRule = { ...rn, rounding: null };
/** An H200 runs cvt.f32.bf16 as a shift by 16 bits, which leaves NaNs as they are. */
const exactShift: ConversionRule = { ...exact, nan: 'extended' };

/**
 * The models of NVIDIA's conversion instructions, lane by lane; `convertPair` and `convertPacked`
 * pack the lanes. Rounding and saturation are those of the PTX ISA (instruction `cvt`), which has no
 * fp8 result without `.satfinite`; no instruction here flushes subnormals. Equal to an H200 bit for
 * bit, NaNs included (fixtures/silicon/sm_90): of the conversions from fp32 all 2^32 inputs were
 * compared, of the others all 65,536 or 256.
 */
export const conversions: { readonly [Name in ConversionName]: Conversion } = {
  'cvt.rn.bf16x2.f32': modelConversion('fp32', 'bf16', rn),
  'cvt.rz.bf16x2.f32': modelConversion('fp32', 'bf16', rz),
  'cvt.rn.satfinite.bf16x2.f32': modelConversion('fp32', 'bf16', rnSatfinite),
  'cvt.rz.satfinite.bf16x2.f32': modelConversion('fp32', 'bf16', rzSatfinite),
  'cvt.rn.f16x2.f32': modelConversion('fp32', 'fp16', rn),
  'cvt.rz.f16x2.f32': modelConversion('fp32', 'fp16', rz),
  'cvt.rn.satfinite.f16x2.f32': modelConversion('fp32', 'fp16', rnSatfinite),
  'cvt.rz.satfinite.f16x2.f32': modelConversion('fp32', 'fp16', rzSatfinite),
  'cvt.rn.satfinite.e4m3x2.f32': modelConversion('fp32', 'e4m3', rnSatfinite),
  'cvt.rn.satfinite.e5m2x2.f32': modelConversion('fp32', 'e5m2', rnSatfinite),
  'cvt.rn.satfinite.e4m3x2.f16x2': modelConversion('fp16', 'e4m3', rnSatfinite),
  'cvt.rn.satfinite.e5m2x2.f16x2': modelConversion('fp16', 'e5m2', rnSatfinite),
  'cvt.rn.f16x2.e4m3x2': modelConversion('e4m3', 'fp16', rn),
  'cvt.rn.f16x2.e5m2x2': modelConversion('e5m2', 'fp16', rn),
  'cvt.f32.f16': modelConversion('fp16', 'fp32', exact),
  'cvt.f32.bf16': modelConversion('bf16', 'fp32', exactShift),
};
