import {
  encode,
  formats,
  patternsOf,
  storageOf,
  type Bits,
  type FormatName,
} from '../../src/formats/index.js';
import type { Tensor } from '../../src/problem/index.js';

/** The place of an element in a tensor of a problem. */
export interface ElementPlace {
  readonly batch: number;
  readonly head: number;
  readonly row: number;
  readonly column: number;
}

/**
 * The tensor with some of its elements replaced.
 * @param pattern the new bit pattern, of up to 32 bits, or a bigint of 64, in the tensor's format;
 * null leaves the element
 */
export function replaceElements(
  tensor: Tensor,
  pattern: (place: ElementPlace) => number | bigint | null,
): Tensor {
  const format = formats[tensor.format];
  const rank4 = tensor.shape.length === 3 ? [1, ...tensor.shape] : tensor.shape;
  const [, heads, rows, width] = rank4 as [number, number, number, number];
  const patterns = patternsOf(tensor.data, format).slice();
  const wide = format.storageBits === 64 ? new BigUint64Array(patterns.buffer) : null;
  for (let i = 0; i < tensor.data.length; i++) {
    const row = Math.floor(i / width);
    const head = Math.floor(row / rows);
    const bits = pattern({
      batch: Math.floor(head / heads),
      head: head % heads,
      row: row % rows,
      column: i % width,
    });
    if (bits === null) continue;
    if (wide === null) patterns[i] = Number(bits);
    else wide[i] = BigInt(bits);
  }
  return { ...tensor, data: storageOf(format, patterns) };
}

/** The special values of a format, NaN first: e4m3 has no infinity. */
export function specialValuesOf(name: FormatName): readonly number[] {
  return formats[name].specials === 'ieee' ? [NaN, Infinity, -Infinity] : [NaN];
}

/** The bits of a special value that the format has. */
export function specialBits(name: FormatName, value: number): Bits {
  const format = formats[name];
  return Number.isNaN(value) ? format.canonicalNan : encode(format, value);
}
