import { isFloat16Array, Float16Array } from '@petamoriken/float16';
import { bytesInMemory, formats, type FormatName, type TensorData } from '../../formats/index.js';
import type { StoredTensor } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { quoted } from './messages.js';

/** Reads stored bytes from an offset on into a target. */
type ReadBytes = (target: Uint8Array, offset: number) => Promise<void>;

/**
 * Reads elements of 4 bits, two in a byte with the first in its low half, as one a byte.
 * @param readBytes reads the packed bytes
 */
export function readingUnpacked(readBytes: ReadBytes): ReadBytes {
  return async (target, offset) => {
    const first = Math.floor(offset / 2);
    const packed = new Uint8Array(Math.ceil((offset + target.length) / 2) - first);
    await readBytes(packed, first);
    for (let i = 0; i < target.length; i++) {
      const at = offset + i - 2 * first;
      target[i] = (packed[at >> 1] >> (4 * (at & 1))) & 0xf;
    }
  };
}

/**
 * Elements of 4 bits, one a byte, as two in a byte.
 * @throws RequestError for an odd number of them, and for a byte that holds more
 */
export function packed(name: string, elements: Uint8Array): Uint8Array {
  if (elements.length % 2 !== 0)
    throw new RequestError(
      `tensor ${quoted(name)} has ${elements.length} elements of 4 bits, which do not fill whole bytes; give an even number`,
    );
  const bytes = new Uint8Array(elements.length / 2);
  elements.forEach((bits, i) => {
    if (bits > 0xf)
      throw new RequestError(
        `tensor ${quoted(name)} has ${bits} at element ${i}, which 4 bits do not hold`,
      );
    bytes[i >> 1] |= bits << (4 * (i & 1));
  });
  return bytes;
}

/** The type of a written tensor's elements: a format, integers or truths. */
export type WrittenType = FormatName | 'int32' | 'truth';

/** The type of a tensor's elements. */
export function writtenType(tensor: StoredTensor): WrittenType {
  if ('format' in tensor) return tensor.format;
  return tensor.data instanceof Int32Array ? 'int32' : 'truth';
}

interface Storage {
  /** The name of the typed array in messages. */
  readonly arrayName: string;
  readonly over: (buffer: ArrayBuffer) => TensorData;
  readonly holds: (data: unknown) => boolean;
}

function tagOf(data: unknown): unknown {
  return ArrayBuffer.isView(data) ? (data as Uint8Array)[Symbol.toStringTag] : undefined;
}

const float32: Storage = {
  arrayName: 'Float32Array',
  over: (buffer) => new Float32Array(buffer),
  holds: (data) => data instanceof Float32Array,
};

const bytePatterns: Storage = {
  arrayName: 'Uint8Array',
  over: (buffer) => new Uint8Array(buffer),
  holds: (data) => data instanceof Uint8Array,
};

/** The typed array of each format, as `TensorData` defines it. */
const storages: Readonly<Record<FormatName, Storage>> = {
  fp64: {
    arrayName: 'Float64Array',
    over: (buffer) => new Float64Array(buffer),
    holds: (data) => data instanceof Float64Array,
  },
  fp32: float32,
  tf32: float32,
  bf16: {
    arrayName: 'Uint16Array',
    over: (buffer) => new Uint16Array(buffer),
    holds: (data) => data instanceof Uint16Array && !isFloat16Array(data),
  },
  fp16: {
    arrayName: 'Float16Array',
    over: (buffer) => new Float16Array(buffer),
    // A runtime's own Float16Array is known by its tag, for older runtimes have no such class.
    holds: (data) => isFloat16Array(data) || tagOf(data) === 'Float16Array',
  },
  e4m3: bytePatterns,
  e5m2: bytePatterns,
  e2m1: bytePatterns,
};

/** Bytes that one element of the format takes in memory, and in a file that does not pack two into one: 1, 2, 4 or 8. */
export function elementBytes(format: FormatName): number {
  return bytesInMemory(formats[format]);
}

/**
 * A zero-filled buffer of `byteLength` bytes.
 * @param purpose begins the message when the runtime cannot give that much
 * @throws RequestError when the length is beyond what one array can hold or memory can give
 */
export function allocate(byteLength: number, purpose: string): ArrayBuffer {
  try {
    const buffer = new ArrayBuffer(byteLength);
    // A host that lends pages it does not have gives buffers longer than any array over their bytes.
    new Uint8Array(buffer);
    return buffer;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RequestError(
      `${purpose}: its ${byteLength} bytes do not fit in memory at once; read it in ranges`,
    );
  }
}

/** The typed array of the format over all of a buffer of little-endian elements. No copy. */
export function elementsOver(format: FormatName, buffer: ArrayBuffer): TensorData {
  return storages[format].over(buffer);
}

/**
 * The bytes behind a tensor's elements. No copy. Little-endian, as every host is that Node.js runs
 * GPU tools on; big-endian hosts are not supported.
 */
export function bytesOf(data: StoredTensor['data']): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** Reverses the bytes of every element of `size` bytes (1, 2, 4 or 8), in place. */
export function swapBytes(bytes: Uint8Array, size: number): void {
  for (let start = 0; start < bytes.length; start += size)
    bytes.subarray(start, start + size).reverse();
}

/** The name, in messages, of the typed array that holds elements of a type. */
export function arrayNameOf(type: WrittenType): string {
  if (type === 'int32') return 'Int32Array';
  return type === 'truth' ? bytePatterns.arrayName : storages[type].arrayName;
}

/** Whether a typed array of this kind holds elements of a type. */
export function isArrayOf(type: WrittenType, data: unknown): boolean {
  if (type === 'int32') return data instanceof Int32Array;
  return (type === 'truth' ? bytePatterns : storages[type]).holds(data);
}
