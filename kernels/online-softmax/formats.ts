import type { PairConversionName } from '../../src/hardware/index.js';

/** The formats that Q, K and V may have; all three have the same. */
export type InputFormat = 'bf16' | 'fp16' | 'e4m3' | 'e5m2';

/** The formats that the output may have. */
export type OutFormat = 'bf16' | 'fp16';

/** Bit patterns of inputs: a byte each for fp8, else 16 bits. */
export type InputPatterns = Uint8Array | Uint16Array;

/** How weights and outputs are rounded to a format. */
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
