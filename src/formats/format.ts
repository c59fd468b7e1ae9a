/** A binary floating-point number format, described as data. */
export interface NumberFormat {
  readonly name: FormatName;
  /** Bits of the container the format is stored in: 8, 16, 32 or 64 (tf32 sits in 32). */
  readonly storageBits: 8 | 16 | 32 | 64;
  /** Significand bits including the hidden one (the precision p; unit roundoff is 2^-p). */
  readonly precision: number;
  readonly exponentBits: number;
  readonly exponentBias: number;
  /** Exponent of the smallest normal number, 2^minExponent. */
  readonly minExponent: number;
  /** Exponent of the largest finite number. */
  readonly maxExponent: number;
  /** The largest finite value. */
  readonly maxFinite: number;
  /**
   * How the topmost exponent field is used. `ieee`: infinities and NaNs. `fn`: finite numbers but
   * for the all-ones pattern, which is NaN, and no infinity (OCP FP8 E4M3).
   */
  readonly specials: 'ieee' | 'fn';
  /** Low storage bits below the significand that carry no information (13 for tf32, else 0). */
  readonly paddingBits: number;
}

export type FormatName = 'fp64' | 'fp32' | 'tf32' | 'bf16' | 'fp16' | 'e4m3' | 'e5m2';

function ieee(
  name: FormatName,
  storageBits: 8 | 16 | 32 | 64,
  exponentBits: number,
  precision: number,
): NumberFormat {
  const exponentBias = 2 ** (exponentBits - 1) - 1;
  return {
    name,
    storageBits,
    precision,
    exponentBits,
    exponentBias,
    minExponent: 1 - exponentBias,
    maxExponent: exponentBias,
    maxFinite: (2 - 2 ** (1 - precision)) * 2 ** exponentBias,
    specials: 'ieee',
    paddingBits: storageBits - exponentBits - precision,
  };
}

/**
 * Every number format flashproof knows. IEEE 754-2019 for fp64, fp32 and fp16; bf16, tf32 as in the
 * PTX ISA (tf32 is an fp32 container whose low 13 bits are ignored); e4m3 and e5m2 as in the OCP
 * 8-bit Floating Point Specification (OFP8) 1.0.
 */
export const formats: Readonly<Record<FormatName, NumberFormat>> = {
  fp64: ieee('fp64', 64, 11, 53),
  fp32: ieee('fp32', 32, 8, 24),
  tf32: ieee('tf32', 32, 8, 11),
  bf16: ieee('bf16', 16, 8, 8),
  fp16: ieee('fp16', 16, 5, 11),
  e4m3: { ...ieee('e4m3', 8, 4, 4), maxExponent: 8, maxFinite: 448, specials: 'fn' },
  e5m2: ieee('e5m2', 8, 5, 3),
};
