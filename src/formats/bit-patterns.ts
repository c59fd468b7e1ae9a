import { RequestError } from '../request-error.js';
import { exponentOf, fromPattern64, powerOfTwo, toPattern64 } from './binary64.js';
import {
  type Bits,
  firstSpecialMagnitude,
  type FormatName,
  type NumberFormat,
  smallestNormal,
} from './format.js';
import { round, type RoundingOptions } from './round.js';

/**
 * The value of a bit pattern of the format, exactly; every NaN pattern gives NaN. The padding of
 * tf32 is ignored, as tensor cores do: a NaN whose payload lies in the padding alone reads as an
 * infinity. fp64 patterns are bigints and all others numbers. Throws a RequestError for a pattern
 * that is not an integer of the format's storage bits or is of the wrong type.
 */
export function decode<Name extends FormatName>(
  format: NumberFormat<Name>,
  bits: Bits<Name>,
): number {
  checkBits(format, bits);
  return typeof bits === 'bigint' ? fromPattern64(bits) : decodeNumber(format, bits);
}

function decodeNumber(format: NumberFormat, bits: number): number {
  const signWeight = 2 ** (format.storageBits - 1);
  const magnitude = Math.floor((bits % signWeight) / 2 ** format.paddingBits);
  const value = valueOfMagnitude(format, magnitude);
  return bits >= signWeight ? -value : value;
}

function valueOfMagnitude(format: NumberFormat, magnitude: number): number {
  const { precision, minExponent, specials } = format;
  const firstSpecial = firstSpecialMagnitude(format);
  if (magnitude >= firstSpecial) {
    return specials === 'ieee' && magnitude === firstSpecial ? Infinity : NaN;
  }
  const hiddenBit = 2 ** (precision - 1);
  const field = Math.floor(magnitude / hiddenBit);
  const fraction = magnitude % hiddenBit;
  const [significand, exponent] =
    field === 0 ? [fraction, minExponent] : [hiddenBit + fraction, minExponent + field - 1];
  return significand * powerOfTwo(exponent - precision + 1);
}

/** Throws a RequestError unless `bits` is a bit pattern of the format. */
function checkBits(format: NumberFormat, bits: number | bigint): void {
  const { name, storageBits } = format;
  const fits =
    storageBits === 64
      ? typeof bits === 'bigint' && bits === BigInt.asUintN(64, bits)
      : typeof bits === 'number' &&
        Number.isInteger(bits) &&
        bits >= 0 &&
        bits < 2 ** storageBits &&
        !Object.is(bits, -0);
  if (!fits) {
    const type = storageBits === 64 ? 'a bigint' : 'an integer number';
    throw new RequestError(
      `${String(bits)} (${typeof bits}) is no ${name} bit pattern; pass ${type} from 0 to 2^${storageBits} - 1`,
    );
  }
}

/**
 * The bit pattern that `value` rounds to: {@link round}, then the pattern of the result. Every NaN
 * gives the format's canonical NaN, whatever its sign or payload; the padding of tf32 is zero. A
 * bigint for fp64 and a number for every other format.
 */
export function encode<Name extends FormatName>(
  format: NumberFormat<Name>,
  value: number,
  options: RoundingOptions = {},
): Bits<Name> {
  const rounded = round(format, value, options);
  if (Number.isNaN(rounded)) return format.canonicalNan;
  const bits =
    format.storageBits === 64 ? toPattern64(rounded) : representableBits(format, rounded);
  // The storage width decides the type, which the compiler cannot see.
  return bits as Bits<Name>;
}

function representableBits(format: NumberFormat, value: number): number {
  const magnitude = magnitudeOfValue(format, Math.abs(value)) * 2 ** format.paddingBits;
  const negative = value < 0 || Object.is(value, -0);
  return negative ? magnitude + 2 ** (format.storageBits - 1) : magnitude;
}

function magnitudeOfValue(format: NumberFormat, value: number): number {
  if (value === Infinity) return firstSpecialMagnitude(format);
  const { precision, minExponent } = format;
  const exponent = Math.max(exponentOf(value), minExponent);
  const significand = value / powerOfTwo(exponent - precision + 1);
  // The hidden bit of a normal significand carries into the exponent field and makes it one larger.
  return (exponent - minExponent) * 2 ** (precision - 1) + significand;
}

/** The kinds of floating-point datum. */
export type NumberClass = 'zero' | 'subnormal' | 'normal' | 'infinite' | 'nan';

/** Class and sign of a bit pattern. */
export interface Classification {
  readonly class: NumberClass;
  /** Whether the sign bit is set; zeros and NaNs have one too. */
  readonly negative: boolean;
}

/**
 * The class and the sign of a bit pattern of the format. The padding of tf32 is ignored, as by
 * {@link decode}; a RequestError is thrown in the same cases.
 */
export function classify<Name extends FormatName>(
  format: NumberFormat<Name>,
  bits: Bits<Name>,
): Classification {
  const magnitude = Math.abs(decode(format, bits));
  return { class: classOfMagnitude(format, magnitude), negative: signBit(format, bits) };
}

function classOfMagnitude(format: NumberFormat, magnitude: number): NumberClass {
  if (Number.isNaN(magnitude)) return 'nan';
  if (magnitude === Infinity) return 'infinite';
  if (magnitude === 0) return 'zero';
  return magnitude < smallestNormal(format) ? 'subnormal' : 'normal';
}

function signBit(format: NumberFormat, bits: number | bigint): boolean {
  return bits >= 2 ** (format.storageBits - 1);
}
