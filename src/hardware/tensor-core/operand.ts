import { formats } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';

/** The formats of the operands that tensor cores multiply. */
export type OperandFormatName =
  'bf16' | 'fp16' | 'tf32' | 'e4m3' | 'e5m2' | 'e2m3' | 'e3m2' | 'e2m1';

/** Properties of a format that decoding an operand needs; a `NumberFormat` has more. */
export interface OperandFormat {
  readonly name: OperandFormatName | 'fp32';
  /** Bits of a pattern, padding included. */
  readonly storageBits: number;
  /** Low bits that carry no information (13 for tf32, else 0). */
  readonly paddingBits: number;
  /** Significand bits including the hidden one. */
  readonly precision: number;
  readonly exponentBits: number;
  readonly exponentBias: number;
  /**
   * Use of the topmost exponent field. `ieee`: infinities and NaNs. `fn`: NaN at the all-ones
   * pattern, no infinity. `finite`: numbers like any other.
   */
  readonly specials: 'ieee' | 'fn' | 'finite';
}

function finite(
  name: OperandFormatName,
  exponentBits: number,
  fractionBits: number,
  exponentBias: number,
): OperandFormat {
  return {
    name,
    storageBits: 1 + exponentBits + fractionBits,
    paddingBits: 0,
    precision: fractionBits + 1,
    exponentBits,
    exponentBias,
    specials: 'finite',
  };
}

/**
 * The operand formats. Those of {@link formats} and, from the OCP Microscaling Formats (MX)
 * Specification 1.0 section 5.3, those of 6 bits, which like e2m1 have no infinity and no NaN;
 * patterns here are 6 and 4 bits, without the padding that memory adds. The numbers of
 * tf32 are fp32 containers whose low 13 bits count for nothing.
 */
export const operandFormats: { readonly [Name in OperandFormatName]: OperandFormat } = {
  bf16: formats.bf16,
  fp16: formats.fp16,
  tf32: formats.tf32,
  e4m3: formats.e4m3,
  e5m2: formats.e5m2,
  e2m3: finite('e2m3', 2, 3, 1),
  e3m2: finite('e3m2', 3, 2, 3),
  e2m1: formats.e2m1,
};

/** Bits of exponent and fraction together. */
function magnitudeBits(format: OperandFormat): number {
  return format.exponentBits + format.precision - 1;
}

/**
 * The smallest magnitude (exponent and fraction fields read as one integer) that is infinite or NaN;
 * one above all magnitudes where the format has none.
 */
function firstSpecialMagnitude(format: OperandFormat): number {
  const magnitudes = 2 ** magnitudeBits(format);
  const perBinade = 2 ** (format.precision - 1);
  return { ieee: magnitudes - perBinade, fn: magnitudes - 1, finite: magnitudes }[format.specials];
}

/**
 * A number as a tensor core sees it, significand · 2^exponent: normal numbers with a significand from
 * 1 to below 2, subnormal ones below 1 with the exponent of the smallest normal number, zero 0 (of
 * either sign). The significand carries the sign. Infinities and NaNs are significands.
 */
export interface Operand {
  readonly significand: number;
  readonly exponent: number;
}

/**
 * The operand with this bit pattern. Padding bits are dropped first, so that a NaN whose payload lies
 * in them alone becomes an infinity. Throws a RequestError for anything but a pattern of the format.
 */
export function decodeOperand(format: OperandFormat, bits: number): Operand {
  if (!(Number.isInteger(bits) && bits >= 0 && bits < 2 ** format.storageBits))
    throw new RequestError(
      `${bits} is no ${format.name} bit pattern; pass an integer from 0 to 2^${format.storageBits} - 1`,
    );
  const signWeight = 2 ** (format.storageBits - 1);
  const magnitude = (bits >>> format.paddingBits) & (2 ** magnitudeBits(format) - 1);
  const [significand, exponent] = decodeMagnitude(format, magnitude);
  return { significand: bits >= signWeight ? -significand : significand, exponent };
}

function decodeMagnitude(format: OperandFormat, magnitude: number): [number, number] {
  const { precision, exponentBias, specials } = format;
  const firstSpecial = firstSpecialMagnitude(format);
  if (magnitude >= firstSpecial)
    return [specials === 'ieee' && magnitude === firstSpecial ? Infinity : NaN, 0];
  const hiddenBit = 2 ** (precision - 1);
  const field = Math.floor(magnitude / hiddenBit);
  const fraction = (magnitude % hiddenBit) / hiddenBit;
  return field === 0 ? [fraction, 1 - exponentBias] : [1 + fraction, field - exponentBias];
}

/** The record by which src/simd/assembly decodes a format's numbers, as it reads it from its memory. */
export function packOperandEncoding(name: OperandFormatName): Int32Array {
  const format = operandFormats[name];
  return Int32Array.of(
    Math.ceil(format.storageBits / 8),
    format.paddingBits,
    magnitudeBits(format),
    format.precision - 1,
    format.exponentBias,
    firstSpecialMagnitude(format),
  );
}
