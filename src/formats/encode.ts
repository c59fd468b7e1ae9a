import { exponentOf, powerOfTwo, toPattern64 } from './binary64.js';
import { type Bits, firstSpecialMagnitude, type FormatName, type NumberFormat } from './format.js';
import { round, type RoundingOptions } from './round.js';

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
