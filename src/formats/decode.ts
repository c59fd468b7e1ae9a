import { RequestError } from '../request-error.js';
import { fromPattern64, powerOfTwo } from './binary64.js';
import { type Bits, firstSpecialMagnitude, type FormatName, type NumberFormat } from './format.js';

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
