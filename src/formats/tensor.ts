import { Float16Array } from '@petamoriken/float16';
import type { FormatName, NumberFormat } from './format.js';
import { RequestError } from '../request-error.js';

/**
 * The typed array that stores a tensor's elements, one per format: fp64 Float64Array, fp32 and tf32
 * Float32Array, fp16 Float16Array (of @petamoriken/float16, or the runtime's own), bf16 Uint16Array
 * of bit patterns, e4m3, e5m2 and e2m1 Uint8Array of bit patterns, one a byte.
 */
export type TensorData = Float64Array | Float32Array | Float16Array | Uint16Array | Uint8Array;

/** Names of factors in files, after the tensor's name and an underscore. */
export type ScaleName = 'descale' | 'block_scale' | 'global_scale';

/** Factors of blocks of a tensor's elements: index i of an axis has factor ⌊i / block⌋ of that axis. */
export interface ScaleFactors {
  readonly name: ScaleName;
  /** The format that the factors are stored in. */
  readonly format: FormatName;
  /** Row-major, exact; finite and not negative. */
  readonly values: Float64Array;
  /** Number of factors along each axis of the tensor. */
  readonly shape: readonly number[];
  /** Number of elements along each axis that share one factor. */
  readonly blocks: readonly number[];
}

/** Multipliers of the elements on decoding: a product of factors. */
export interface TensorScales {
  readonly factors: readonly ScaleFactors[];
  /** Significand bits that a product of factors adds to an element's. */
  readonly precision: number;
  /** No product of factors is larger. */
  readonly largest: number;
}

/** A dense tensor in row-major order. */
export interface Tensor {
  readonly format: FormatName;
  readonly shape: readonly number[];
  readonly data: TensorData;
  /** Multipliers that `decodeTensor` applies to the elements; none if left out. */
  readonly scales?: TensorScales;
  /** The integers that the elements are, which `format` holds; left out for others. */
  readonly integers?: IntegerFormatName;
}

/** Formats of integers that elements may be stored in. */
export type IntegerFormatName = 'int8' | 'int4';

/** The typed array that stores each format's elements. */
export interface StorageArrays {
  readonly fp64: Float64Array;
  readonly fp32: Float32Array;
  readonly tf32: Float32Array;
  readonly bf16: Uint16Array;
  readonly fp16: Float16Array;
  readonly e4m3: Uint8Array;
  readonly e5m2: Uint8Array;
  readonly e2m1: Uint8Array;
}

const storages: {
  readonly [Name in FormatName]: {
    /** The array's Symbol.toStringTag. */
    readonly tag: string;
    readonly allocate: new (length: number) => StorageArrays[Name];
  };
} = {
  fp64: { tag: 'Float64Array', allocate: Float64Array },
  fp32: { tag: 'Float32Array', allocate: Float32Array },
  tf32: { tag: 'Float32Array', allocate: Float32Array },
  bf16: { tag: 'Uint16Array', allocate: Uint16Array },
  fp16: { tag: 'Float16Array', allocate: Float16Array },
  e4m3: { tag: 'Uint8Array', allocate: Uint8Array },
  e5m2: { tag: 'Uint8Array', allocate: Uint8Array },
  e2m1: { tag: 'Uint8Array', allocate: Uint8Array },
};

/** Bit patterns, one per element, or two words per element of a 64-bit format. */
export type PatternArray = Uint8Array | Uint16Array | Uint32Array;

const unsignedArrays: Readonly<
  Record<
    4 | 8 | 16 | 32 | 64,
    new (buffer: ArrayBufferLike, byteOffset?: number, length?: number) => PatternArray
  >
> = { 4: Uint8Array, 8: Uint8Array, 16: Uint16Array, 32: Uint32Array, 64: Uint32Array };

/**
 * Throws a RequestError unless `data` is the typed array that stores the format's elements. It
 * checks the array's tag, not its prototype, so the Float16Array of @petamoriken/float16, the
 * runtime's own, and arrays of another realm all pass.
 */
export function checkStorage(data: TensorData, format: NumberFormat): void {
  const tag = Object.prototype.toString.call(data).slice('[object '.length, -1);
  const expected = storages[format.name].tag;
  if (tag !== expected) {
    throw new RequestError(
      `${format.name} is stored as ${expected} but ${tag} was given; pass the array that stores the format, or name the array's own format`,
    );
  }
}

/**
 * The bit patterns of an array of 8-, 16- or 32-bit elements, or the 32-bit words of an array of
 * 64-bit elements, as a view of the same memory. A view also goes around @petamoriken/float16's
 * proxy, whose element access is slow.
 */
export function patternsOf(data: TensorData, format: NumberFormat): PatternArray {
  const perElement = format.storageBits === 64 ? 2 : 1;
  return new unsignedArrays[format.storageBits](
    data.buffer,
    data.byteOffset,
    data.length * perElement,
  );
}

/** A new array of zeros that stores `length` elements of the format. */
export function allocateStorage<Name extends FormatName>(
  format: NumberFormat<Name>,
  length: number,
): StorageArrays[Name] {
  return new storages[format.name].allocate(length);
}

/** Bytes of one element in memory. */
export function bytesInMemory(format: NumberFormat): number {
  return Math.ceil(format.storageBits / 8);
}

/** The array that stores the format's elements, around the memory of their bit patterns. */
export function storageOf(format: NumberFormat, patterns: PatternArray): TensorData {
  const View = storages[format.name].allocate as unknown as new (
    buffer: ArrayBufferLike,
    byteOffset: number,
    length: number,
  ) => TensorData;
  const bytes = bytesInMemory(format);
  return new View(patterns.buffer, patterns.byteOffset, patterns.byteLength / bytes);
}
