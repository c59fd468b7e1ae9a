import { RequestError } from '../../request-error.js';
import type { WholeDtype } from './dtype.js';

/** The typed array over little-endian integers of each type. */
const arrays = {
  truth: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
} as const satisfies Readonly<Record<WholeDtype, unknown>>;

const mend = 'save it as int32, or as booleans where it is true or false';

/**
 * Bytes of one whole number.
 * @param holds the kind of the elements, for the message
 * @throws RequestError for elements that are no whole numbers
 */
export function wholeBytes(whole: WholeDtype | null, holds: string, where: string): number {
  if (whole === null)
    throw new RequestError(
      `${where}: holds ${holds} where whole numbers or booleans belong; ${mend}`,
    );
  return arrays[whole].BYTES_PER_ELEMENT;
}

/**
 * Integers of any width as 32 bits.
 * @throws RequestError for truths, and for an integer that 32 bits do not hold
 */
export function int32Of(buffer: ArrayBuffer, whole: WholeDtype | null, where: string): Int32Array {
  if (whole === null || whole === 'truth')
    throw new RequestError(`${where}: holds booleans where integers belong; save it as int32`);
  const values = new arrays[whole](buffer);
  if (values instanceof Int32Array) return values;
  const result = new Int32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    // An integer of 64 bits may be rounded here, but not into the range of 32.
    const value = Number(values[i]);
    result[i] = value;
    if (result[i] !== value)
      throw new RequestError(
        `${where}: has ${values[i]} at element ${i}, which 32 bits do not hold; give a smaller number`,
      );
  }
  return result;
}

/**
 * Truths, a byte each: 0 or 1.
 * @throws RequestError for integers wider than a byte, and for a byte that is neither
 */
export function truthsOf(buffer: ArrayBuffer, whole: WholeDtype | null, where: string): Uint8Array {
  if (whole === null || arrays[whole].BYTES_PER_ELEMENT !== 1)
    throw new RequestError(
      `${where}: holds ${whole ?? 'other'} numbers where booleans belong; save it as booleans`,
    );
  const truths = new Uint8Array(buffer);
  const other = truths.findIndex((truth) => truth > 1);
  if (other >= 0)
    throw new RequestError(
      `${where}: has the byte ${truths[other]} at element ${other}, neither false nor true; save it as booleans`,
    );
  return truths;
}
