import type { PairConversionName } from '../../src/hardware/index.js';
import {
  roundingConversions,
  type InputFormat,
  type OutFormat,
} from '../online-softmax/formats.js';

/** The formats that Q, K and V may have; all three have the same. */
export type Fa4Format = InputFormat;

/** The formats that the output may have. */
export type Fa4OutFormat = OutFormat;

/** What the kernel does with inputs of a format. */
export interface Fa4FormatRule {
  readonly bits: 16 | 8;
  /** How P is rounded for its product with V. */
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
 * What FlashAttention-4 does with each input format. Source: `rescale_threshold` and `max_offset` in
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
export function isFa4Format(format: string): format is Fa4Format {
  return Object.hasOwn(fa4Formats, format);
}
