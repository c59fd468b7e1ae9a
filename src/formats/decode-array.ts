import { checkStorage, patternsOf, type TensorData } from './tensor.js';
import { RequestError } from '../request-error.js';
import { decode } from './bit-patterns.js';
import { decodeShort, isShort } from './short-decoder.js';
import type { FormatName, NumberFormat } from './format.js';

/**
 * The exact values of elements `start` (default 0) to `end` (exclusive, default all) of an array in
 * the format's storage type, written from the beginning of `out` (default a new array of that
 * length) and returned in it; elements of `out` beyond them are left alone. As {@link decode} reads
 * each element. Throws a RequestError when the array is not the format's storage, the range does
 * not lie in it, or `out` is too short.
 */
export function decodeToFloat64(
  data: TensorData,
  format: NumberFormat,
  out?: Float64Array,
  start = 0,
  end = data.length,
): Float64Array {
  checkRequest(data, format, out, start, end);
  const values = out ?? new Float64Array(end - start);
  fillValues(data, format, values, start, end);
  return values;
}

/**
 * As {@link decodeToFloat64} into `values`.
 * @returns whether it is known that all elements are finite: it may be so where it is not known
 */
export function decodeTold(
  data: TensorData,
  format: NumberFormat,
  values: Float64Array,
  start: number,
  end: number,
): boolean {
  checkRequest(data, format, values, start, end);
  return fillValues(data, format, values, start, end);
}

/** Decodes; returns as `decodeTold`. */
function fillValues(
  data: TensorData,
  format: NumberFormat,
  values: Float64Array,
  start: number,
  end: number,
): boolean {
  if (format.storageBits > 16) {
    copyValues(data, format, values, start, end);
    return false;
  }
  const bits = patternsOf(data, format);
  if (isShort(format) && end - start >= fewest)
    return decodeShort(format, bits as Uint16Array, { start, end }, values);
  const table = decodeTable(format);
  for (let i = start; i < end; i++) values[i - start] = table[bits[i]];
  return false;
}

/** From so many elements on a call of the loops costs less than it saves. */
const fewest = 64;

/**
 * Like {@link decodeToFloat64} with fp32 results. Every format but fp64 fits in fp32 exactly; fp64
 * elements are rounded to nearest, ties to even.
 */
export function decodeToFloat32(
  data: TensorData,
  format: NumberFormat,
  out?: Float32Array,
  start = 0,
  end = data.length,
): Float32Array {
  checkRequest(data, format, out, start, end);
  const values = out ?? new Float32Array(end - start);
  if (format.storageBits > 16) {
    copyValues(data, format, values, start, end);
  } else {
    const bits = patternsOf(data, format);
    const table = decodeTable(format);
    for (let i = start; i < end; i++) values[i - start] = table[bits[i]];
  }
  return values;
}

/** Elements per pass over data that becomes fp32 first: small enough to stay in the first-level cache. */
const chunk = 1024;

function copyValues(
  data: TensorData,
  format: NumberFormat,
  values: Float64Array | Float32Array,
  start: number,
  end: number,
): void {
  // A container wider than 16 bits is an ECMAScript float array, by checkStorage.
  const floats = data as Float64Array | Float32Array;
  if (format.paddingBits === 0) {
    values.set(floats.subarray(start, end));
    return;
  }
  const bits = patternsOf(data, format);
  const informative = -(2 ** format.paddingBits);
  const truncatedBits = new Uint32Array(chunk);
  const truncated = new Float32Array(truncatedBits.buffer);
  for (let first = start; first < end; first += chunk) {
    const count = Math.min(chunk, end - first);
    for (let i = 0; i < count; i++) truncatedBits[i] = bits[first + i] & informative;
    values.set(truncated.subarray(0, count), first - start);
  }
}

const decodeTables = new Map<FormatName, Float32Array>();

/** The value of every bit pattern of an 8- or 16-bit format, made on first use. */
function decodeTable(format: NumberFormat): Float32Array {
  const known = decodeTables.get(format.name);
  if (known !== undefined) return known;
  const table = new Float32Array(2 ** format.storageBits);
  if (format.name === 'bf16') {
    // Its patterns are the upper halves of those of fp32.
    const wide = new Uint32Array(table.buffer);
    for (let bits = 0; bits < wide.length; bits++) wide[bits] = bits << 16;
  } else for (let bits = 0; bits < table.length; bits++) table[bits] = decode(format, bits);
  decodeTables.set(format.name, table);
  return table;
}

/** @throws RequestError when elements [start, end) of an array cannot be decoded to `out`. */
export function checkRequest(
  data: TensorData,
  format: NumberFormat,
  out: Float64Array | Float32Array | undefined,
  start: number,
  end: number,
): void {
  checkStorage(data, format);
  const valid = Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end;
  if (!valid || end > data.length) {
    throw new RequestError(
      `elements ${start} to ${end} do not lie in an array of ${data.length}; pass 0 ≤ start ≤ end ≤ ${data.length}`,
    );
  }
  if (out !== undefined && out.length < end - start) {
    throw new RequestError(
      `the output array holds ${out.length} elements but ${end - start} are decoded; pass a longer one`,
    );
  }
}
