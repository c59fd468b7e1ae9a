import { formats } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { conversions } from './conversions.js';
import type { PackedConversionName, PairConversionName } from './conversions.js';

/**
 * What `cvt… d, a, b` of two fp32 operands leaves in d, for the bit patterns of a and b: the result
 * of a, the first operand, in the high half and that of b in the low half (PTX ISA, instruction
 * `cvt`). 32 bits for 16-bit results and 16 bits for fp8. Each half rounds as the instruction's
 * {@link conversions}. Throws a RequestError for what is no fp32 bit pattern.
 */
export function convertPair(name: PairConversionName, first: number, second: number): number {
  const { destination, evaluate } = conversions[name];
  return join(evaluate(first), evaluate(second), formats[destination].storageBits);
}

/**
 * What `cvt… d, a` of a word of two numbers leaves in d, for the bits of a: the two halves, each
 * converted as the instruction's {@link conversions}, in the same order. A word of two fp16 numbers
 * has 32 bits and one of two fp8 numbers 16. Throws a RequestError for what is no such word.
 */
export function convertPacked(name: PackedConversionName, word: number): number {
  const { source, destination, evaluate } = conversions[name];
  const bits = formats[source].storageBits;
  if (!(Number.isInteger(word) && word >= 0 && word < 2 ** (2 * bits)))
    throw new RequestError(
      `${word} is no pair of ${source} numbers; pass an integer from 0 to 2^${2 * bits} - 1`,
    );
  const high = Math.floor(word / 2 ** bits);
  const low = word % 2 ** bits;
  return join(evaluate(high), evaluate(low), formats[destination].storageBits);
}

function join(high: number, low: number, bits: number): number {
  return high * 2 ** bits + low;
}
