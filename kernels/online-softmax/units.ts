import {
  exp2Approx,
  exp2ApproxFtz,
  lg2ApproxFtz,
  type PairConversionName,
  rcpApproxFtz,
} from '../../src/hardware/index.js';
import { decode, encode, formats } from '../../src/formats/index.js';

/** The formats that Q, K and V may have; all three have the same. */
export type InputFormat = 'bf16' | 'fp16' | 'e4m3' | 'e5m2';

/** The formats that the output may have. */
export type OutFormat = 'bf16' | 'fp16';

/** Bit patterns of inputs: a byte each for fp8, else 16 bits. */
export type InputPatterns = Uint8Array | Uint16Array;

/** Conversions that round weights and outputs to a format. */
export const roundingConversions: Readonly<Record<InputFormat, PairConversionName>> = {
  bf16: 'cvt.rn.bf16x2.f32',
  fp16: 'cvt.rn.f16x2.f32',
  e4m3: 'cvt.rn.satfinite.e4m3x2.f32',
  e5m2: 'cvt.rn.satfinite.e5m2x2.f32',
};

/** Bits of an element of a format. */
export function bitsOf(format: InputFormat): 16 | 8 {
  return format === 'bf16' || format === 'fp16' ? 16 : 8;
}

const { fp32 } = formats;

/** A function of fp32 bit patterns as one of numbers. */
export function onNumbers(instruction: (bits: number) => number): (x: number) => number {
  return (x) => decode(fp32, instruction(encode(fp32, x)));
}

/** ex2.approx.ftz, lg2.approx.ftz and rcp.approx.ftz of fp32 numbers. */
export const exp2Hardware = onNumbers(exp2ApproxFtz);
export const log2Hardware = onNumbers(lg2ApproxFtz);
const reciprocalHardware = onNumbers(rcpApproxFtz);

/** The exponentials of the special function unit, by the instruction that a kernel uses. */
export const exp2Units = {
  'ex2.approx.ftz.f32': exp2Hardware,
  'ex2.approx.f32': onNumbers(exp2Approx),
} as const;

/** An exponential of the special function unit. */
export type Exp2Unit = keyof typeof exp2Units;

/** Ways to compute 1 / l: the unit's approximation, or the division rounded to nearest. */
export const reciprocals = {
  'rcp.approx.ftz.f32': reciprocalHardware,
  'div.rn.f32': (x: number) => Math.fround(1 / x),
} as const;

/** A way to compute a reciprocal. */
export type Reciprocal = keyof typeof reciprocals;

/** Rows of a warp, whose lanes decide together whether to rescale. */
export const warpRows = 32;

/** ln 2 as an fp32 number. */
export const naturalLogOf2 = Math.fround(Math.LN2);
