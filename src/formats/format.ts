import { powerOfTwo } from './binary64.js';

/** The number formats flashproof knows. */
export type FormatName = 'fp64' | 'fp32' | 'tf32' | 'bf16' | 'fp16' | 'e4m3' | 'e5m2' | 'e2m1';

/** A bit pattern of a format: a bigint for fp64, whose 64 bits exceed a safe integer, else a number. */
export type Bits<Name extends FormatName = FormatName> = Name extends 'fp64' ? bigint : number;

/** A binary floating-point number format, described as data. */
export interface NumberFormat<Name extends FormatName = FormatName> {
  readonly name: Name;
  /** Bits of the container the format is stored in: tf32 sits in 32; files pack two of 4 into a byte, memory has one. */
  readonly storageBits: 4 | 8 | 16 | 32 | 64;
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
   * Use of the topmost exponent field. `ieee`: infinities and NaNs. `fn`: finite numbers but for the all-ones
   * pattern, which is NaN, and no infinity (OCP FP8 E4M3). `finite`: finite numbers alone; values beyond them, and
   * NaN, become the largest, NaN the positive one (PTX: cvt to .e2m1x2).
   */
  readonly specials: 'ieee' | 'fn' | 'finite';
  /** Low storage bits below the significand that carry no information (13 for tf32, else 0). */
  readonly paddingBits: number;
  /**
   * The quiet NaN that an operation delivers when it has no NaN payload to pass on; in a format without NaN, the number
   * that NaN becomes.
   */
  readonly canonicalNan: Bits<Name>;
}

function ieee<Name extends FormatName>(
  name: Name,
  storageBits: 4 | 8 | 16 | 32 | 64,
  exponentBits: number,
  precision: number,
  canonicalNan: Bits<Name>,
): NumberFormat<Name> {
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
    canonicalNan,
  };
}

/**
 * Every number format flashproof knows. IEEE 754-2019 for fp64, fp32 and fp16; bf16, tf32 as in the
 * PTX ISA (tf32 is an fp32 container whose low 13 bits are ignored); e4m3 and e5m2 as in the OCP
 * 8-bit Floating Point Specification (OFP8) 1.0, e2m1 as in its Microscaling Formats (MX) Specification 1.0. The canonical NaNs are those that NVIDIA's
 * `cvt.rn` from fp32 delivers for every NaN and fp32 addition for every NaN and invalid operation, as
 * captured on sm_90 (fixtures/silicon/sm_90); fp64 arithmetic there passes payloads on and has no
 * one canonical NaN, so fp64 takes the positive quiet NaN with an empty payload.
 */
export const formats: { readonly [Name in FormatName]: NumberFormat<Name> } = {
  fp64: ieee('fp64', 64, 11, 53, 0x7ff8000000000000n),
  fp32: ieee('fp32', 32, 8, 24, 0x7fffffff),
  tf32: ieee('tf32', 32, 8, 11, 0x7fffe000),
  bf16: ieee('bf16', 16, 8, 8, 0x7fff),
  fp16: ieee('fp16', 16, 5, 11, 0x7fff),
  e4m3: { ...ieee('e4m3', 8, 4, 4, 0x7f), maxExponent: 8, maxFinite: 448, specials: 'fn' },
  e5m2: ieee('e5m2', 8, 5, 3, 0x7f),
  e2m1: { ...ieee('e2m1', 4, 2, 2, 0x7), maxExponent: 2, maxFinite: 6, specials: 'finite' },
};

/**
 * Formats of tensors that need no scale factors; the others have so short a range that blocks of their elements need
 * factors.
 */
export const plainFormats: readonly FormatName[] = Object.values(formats)
  .filter(({ specials }) => specials !== 'finite')
  .map(({ name }) => name);

/** The unit roundoff u = 2^-p: the largest relative error of one rounding to nearest, without underflow. */
export function unitRoundoff(format: NumberFormat): number {
  return powerOfTwo(-format.precision);
}

/** The smallest positive number of the format, the spacing of its subnormals. */
export function smallestSubnormal(format: NumberFormat): number {
  return powerOfTwo(format.minExponent - format.precision + 1);
}

/** The smallest positive number of the format with a full significand, 2^minExponent. */
export function smallestNormal(format: NumberFormat): number {
  return powerOfTwo(format.minExponent);
}

/**
 * The magnitude of a bit pattern is its exponent and fraction fields read as one integer, without
 * the sign and the padding. Magnitudes order the non-negative numbers of a format and count them
 * one by one from zero, across subnormals and binades, up to the largest finite number. All of the
 * formats but fp64 have magnitudes below 2^31.
 */

/** The magnitude of the largest finite number of a format narrower than fp64. */
export function maxFiniteMagnitude(format: NumberFormat): number {
  return firstSpecialMagnitude(format) - 1;
}

/**
 * The smallest magnitude that is no finite number: infinity's in an `ieee` format, NaN's in an `fn`
 * format; in one without either it is beyond the bits of the format.
 */
export function firstSpecialMagnitude(format: NumberFormat): number {
  const magnitudes = 2 ** (format.exponentBits + format.precision - 1);
  const special = { ieee: 2 ** (format.precision - 1), fn: 1, finite: 0 };
  return magnitudes - special[format.specials];
}
