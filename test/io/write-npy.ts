import type { StoredTensor } from '../../src/problem/index.js';
import { atomicWriteFile } from '../../src/io/atomic-write.js';
import { bytesOf, checkTensor, writtenType } from '../../src/io/tensors/index.js';
import type { WrittenType } from '../../src/io/tensors/element-storage.js';
import { npyMagic } from '../../src/io/tensors/npy/header.js';

/**
 * The type string that elements are written under: numpy's own, and for the types of ml_dtypes the
 * opaque ones of their width, which numpy.load accepts; it refuses the f1 of float8_e5m2.
 */
const npyDescrOf: Readonly<Record<WrittenType, string>> = {
  int32: '<i4',
  truth: '|b1',
  fp64: '<f8',
  fp32: '<f4',
  tf32: '<f4',
  bf16: '<V2',
  fp16: '<f2',
  e4m3: '|V1',
  e5m2: '|V1',
  e2m1: '|V1',
};

/** numpy leaves room so that the first dimension can grow to this many digits in place. */
const growthDigits = 21;

/** The elements begin at a multiple of this many bytes, so that the file can be mapped. */
const alignment = 64;

function shapeLiteral(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
}

function headerOf(tensor: StoredTensor): Uint8Array {
  const { shape } = tensor;
  const dict =
    `{'descr': '${npyDescrOf[writtenType(tensor)]}', 'fortran_order': False, ` +
    `'shape': ${shapeLiteral(shape)}, }`;
  const growth = shape.length === 0 ? 0 : growthDigits - String(shape[0]).length;
  const start = npyMagic.length + 4;
  const unpadded = start + dict.length + growth + 1;
  // A whole block is added where none is needed, as numpy does: files come out equal byte for byte.
  const total = unpadded + alignment - (unpadded % alignment);
  const header = new Uint8Array(total).fill(0x20);
  header.set(npyMagic);
  header.set([1, 0], npyMagic.length);
  new DataView(header.buffer).setUint16(npyMagic.length + 2, total - start, true);
  // All of it is ASCII.
  header.set(new TextEncoder().encode(dict), start);
  header[total - 1] = 0x0a;
  return header;
}

/** The bytes of a tensor as an npy array of format version 1.0, in pieces; elements not copied. */
export function* npyContent(tensor: StoredTensor): Generator<Uint8Array> {
  yield headerOf(tensor);
  yield bytesOf(tensor.data);
}

/** Bytes of a tensor as an npy array. */
export function npyContentBytes(tensor: StoredTensor): number {
  return headerOf(tensor).length + tensor.data.byteLength;
}

/**
 * Writes an npy file, byte for byte as numpy.save does. bf16 is written as `<V2`, e4m3 and e5m2 as
 * `|V1`, tf32 as `<f4`: the file then does not tell e4m3 from e5m2, nor tf32 from fp32, and the
 * format must be declared when it is opened. The path holds the whole file or its old content.
 * @throws RequestError when the tensor cannot be written, or the file system fails
 */
export async function writeNpy(path: string, tensor: StoredTensor): Promise<void> {
  checkTensor(path, tensor);
  await atomicWriteFile(path, npyContent(tensor));
}
