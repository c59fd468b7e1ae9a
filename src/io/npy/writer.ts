import type { Tensor } from '../../formats/index.js';
import { atomicWriteFile } from '../atomic-write.js';
import { bytesOf } from '../element-storage.js';
import { checkTensor } from '../named-tensors.js';
import { npyDescrOf } from './dtypes.js';
import { npyMagic } from './header.js';

/** numpy leaves room so that the first dimension can grow to this many digits in place. */
const growthDigits = 21;

/** The elements begin at a multiple of this many bytes, so that the file can be mapped. */
const alignment = 64;

function shapeLiteral(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
}

function headerOf({ format, shape }: Tensor): Uint8Array {
  const dict =
    `{'descr': '${npyDescrOf[format]}', 'fortran_order': False, ` +
    `'shape': ${shapeLiteral(shape)}, }`;
  const growth = shape.length === 0 ? 0 : growthDigits - String(shape[0]).length;
  const start = npyMagic.length + 4;
  const unpadded = start + dict.length + growth + 1;
  // A whole block is added where none is needed, as numpy does: files come out equal byte for byte.
  const total = unpadded + alignment - (unpadded % alignment);
  const header = Buffer.alloc(total, 0x20);
  header.set(npyMagic);
  header.set([1, 0], npyMagic.length);
  header.writeUInt16LE(total - start, npyMagic.length + 2);
  header.write(dict, start, 'latin1');
  header[total - 1] = 0x0a;
  return header;
}

/** The bytes of a tensor as an npy array of format version 1.0, in pieces; elements not copied. */
export function* npyContent(tensor: Tensor): Generator<Uint8Array> {
  yield headerOf(tensor);
  yield bytesOf(tensor.data);
}

/** Bytes of a tensor as an npy array. */
export function npyContentBytes(tensor: Tensor): number {
  return headerOf(tensor).length + tensor.data.byteLength;
}

/**
 * Writes an npy file, byte for byte as numpy.save does. bf16 is written as `<V2`, e4m3 and e5m2 as
 * `|V1`, tf32 as `<f4`: the file then does not tell e4m3 from e5m2, nor tf32 from fp32, and the
 * format must be declared when it is opened. The path holds the whole file or what it held before.
 * @throws RequestError when the tensor cannot be written, or the file system fails
 */
export async function writeNpy(path: string, tensor: Tensor): Promise<void> {
  checkTensor(path, tensor);
  await atomicWriteFile(path, npyContent(tensor));
}
