import { RequestError } from '../../../request-error.js';
import type { ReadBytes } from '../column-major.js';
import { checkDeclarations, type DeclaredFormats, type OpenOptions, readingOf } from '../dtype.js';
import { tensorIn } from '../messages.js';
import { npyMagic, readNpyHeader } from './header.js';
import { type HeldTensor, tensorFile } from '../read-tensors.js';
import type { ByteSource, TensorFile } from '../tensor-file.js';
import type { StoredTensor as AnyTensor } from '../../../problem/index.js';
import { bytesOf, writtenType } from '../element-storage.js';
import { npyDescrOf } from './dtypes.js';

/** The source of an npy array, and the way to read its elements. */
interface NpyArraySource {
  readonly path: string;
  readonly name: string;
  /** Reads bytes of the array, counted from its magic. */
  readonly read: ReadBytes;
  /** Bytes of the whole array. */
  readonly totalBytes: number;
  readonly declared: DeclaredFormats;
  readonly metadata: ReadonlyMap<string, string>;
  /** Whether an array of objects or records is refused, or listed beside others as unreadable. */
  readonly compound: 'listed' | 'refused';
}

/**
 * The tensor of one npy array, its header read and checked.
 * @throws RequestError when the array breaks the format, its declared format is impossible, or it is
 * one of objects or records and those are refused
 */
export async function npyArray(source: NpyArraySource): Promise<HeldTensor> {
  const { path, name, read, totalBytes, declared, metadata } = source;
  const header = await readNpyHeader(read, totalBytes, tensorIn(path, name));
  const { descr, dtype, shape, elements, byteLength, dataStart, columnMajor } = header;
  const reading = readingOf({ path, name, dtype: descr }, dtype, declared, metadata);
  if (dtype.bits === null && reading.refusal !== null && source.compound === 'refused')
    throw new RequestError(reading.refusal);
  return {
    entry: { name, dtype: descr, format: reading.format, shape, elements, byteLength },
    reading,
    dtype,
    bigEndian: dtype.bigEndian,
    columnMajor,
    readBytes: (target, offset) => read(target, dataStart + offset),
  };
}

/** The name of the tensor in an npy file or member: its base name without the ending `.npy`. */
export function npyTensorName(fileName: string): string {
  return fileName.replace(/\.npy$/, '');
}

/**
 * The one tensor of an npy file, named after the file.
 * @param source open on the file; closed with the returned TensorFile
 * @throws RequestError when the file breaks the format, or holds objects or records
 */
export async function openNpy(source: ByteSource, options: OpenOptions): Promise<TensorFile> {
  const { formats: declared = {} } = options;
  const { path, size, read, close } = source;
  const name = npyTensorName(path.slice(path.search(/[^/\\]*$/)));
  checkDeclarations(path, options, new Set([name]));
  const metadata = new Map<string, string>();
  const tensor = await npyArray({
    path,
    name,
    read,
    totalBytes: size,
    declared,
    metadata,
    compound: 'refused',
  });
  return tensorFile(source, metadata, [tensor], close);
}

/** numpy leaves room so that the first dimension can grow to this many digits in place. */
const growthDigits = 21;

/** The elements begin at a multiple of this many bytes, so that the file can be mapped. */
const alignment = 64;

function shapeLiteral(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
}

function headerOf(tensor: AnyTensor): Uint8Array {
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
export function* npyContent(tensor: AnyTensor): Generator<Uint8Array> {
  yield headerOf(tensor);
  yield bytesOf(tensor.data);
}

/** Bytes of a tensor as an npy array. */
export function npyContentBytes(tensor: AnyTensor): number {
  return headerOf(tensor).length + tensor.data.byteLength;
}
