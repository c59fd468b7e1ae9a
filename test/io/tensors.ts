import { Float16Array } from '@petamoriken/float16';
import type { FormatName } from '../../src/formats/index.js';
import type { Tensor, TensorData } from '../../src/problem/index.js';

export const formatNames: readonly FormatName[] = [
  'fp64',
  'fp32',
  'tf32',
  'bf16',
  'fp16',
  'e4m3',
  'e5m2',
];

/** Bytes of one element of each format. */
export const widths: Readonly<Record<FormatName, number>> = {
  fp64: 8,
  fp32: 4,
  tf32: 4,
  bf16: 2,
  fp16: 2,
  e4m3: 1,
  e5m2: 1,
  e2m1: 1,
};

/** The typed array that the format's elements are kept in, over these little-endian bytes. */
export function dataOver(format: FormatName, bytes: Uint8Array): TensorData {
  const { buffer } = new Uint8Array(bytes);
  if (format === 'fp64') return new Float64Array(buffer);
  if (format === 'fp32' || format === 'tf32') return new Float32Array(buffer);
  if (format === 'fp16') return new Float16Array(buffer);
  return format === 'bf16' ? new Uint16Array(buffer) : new Uint8Array(buffer);
}

/** A tensor whose elements are these bytes. */
export function tensorOver(
  format: FormatName,
  shape: readonly number[],
  bytes: Uint8Array,
): Tensor {
  return { format, shape, data: dataOver(format, bytes) };
}

/** A tensor of the shape whose bytes count up, all bytes of an element different. */
export function countingTensor(format: FormatName, shape: readonly number[]): Tensor {
  const elements = shape.reduce((product, dimension) => product * dimension, 1);
  const bytes = Uint8Array.from({ length: elements * widths[format] }, (_, index) => index * 7 + 1);
  return tensorOver(format, shape, bytes);
}

/** The bytes behind a typed array. */
export function rawBytes(data: TensorData): Uint8Array {
  return new Uint8Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
}
