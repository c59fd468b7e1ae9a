import { RequestError } from '../../request-error.js';
import { firstSpecialMagnitude, magnitudeBits } from './operand-formats.js';
import type { OperandFormat } from './operand-formats.js';

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
 * in them alone becomes an infinity. Throws a RequestError for what is no pattern of the format.
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
