import { convertFloat32Bits } from './encode-array.js';
import { formats } from './format.js';
import type { NumberFormat } from './format.js';
import type { ShortFormatName } from './word-rounding.js';
import type { RoundingOptions } from './rounding.js';
import { mismatchingBlocks } from './silicon-hash.js';
import type { BlockProgress, HashComparison } from './silicon-hash.js';

/** A conversion from fp32 whose result on every input was captured on silicon. */
export interface ConversionTarget {
  /** The PTX instruction, converting the low of its two inputs with 0.0 as the high one. */
  readonly instruction: string;
  readonly format: NumberFormat<ShortFormatName>;
  readonly options: RoundingOptions;
  /** The file of the captured fingerprint, in fixtures/silicon/convert. */
  readonly fingerprint: string;
}

/** The captured conversions. PTX has no fp8 conversion without .satfinite. */
export const conversionTargets: readonly ConversionTarget[] = [
  {
    instruction: 'cvt.rn.bf16x2.f32',
    format: formats.bf16,
    options: {},
    fingerprint: 'hash_cvt_rn_bf16_f32.bin',
  },
  {
    instruction: 'cvt.rn.f16x2.f32',
    format: formats.fp16,
    options: {},
    fingerprint: 'hash_cvt_rn_f16_f32.bin',
  },
  {
    instruction: 'cvt.rn.satfinite.e4m3x2.f32',
    format: formats.e4m3,
    options: { overflow: 'saturate' },
    fingerprint: 'hash_cvt_rn_satfinite_e4m3_f32.bin',
  },
  {
    instruction: 'cvt.rn.satfinite.e5m2x2.f32',
    format: formats.e5m2,
    options: { overflow: 'saturate' },
    fingerprint: 'hash_cvt_rn_satfinite_e5m2_f32.bin',
  },
];

/**
 * The blocks, of those asked for, on which {@link convertFloat32Bits} differs from the captured
 * conversion; none when it conforms. Pure: the caller reads the captured bytes and may split the
 * blocks among workers. Throws a RequestError for a fingerprint of the wrong length or a block out
 * of range.
 */
export function conformConversion(
  target: ConversionTarget,
  comparison: HashComparison,
  onProgress?: BlockProgress,
): number[] {
  const { format, options } = target;
  return mismatchingBlocks(
    (inputs, results) => convertFloat32Bits(format, inputs, results, options),
    comparison,
    onProgress,
  );
}
