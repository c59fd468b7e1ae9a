import { RequestError } from '../../../request-error.js';
import type { ReadBytes } from '../column-major.js';
import { checkDeclarations, type DeclaredFormats, type OpenOptions, readingOf } from '../dtype.js';
import { tensorIn } from '../messages.js';
import { readNpyHeader } from './header.js';
import { type HeldTensor, tensorFile } from '../read-tensors.js';
import type { ByteSource, TensorFile } from '../tensor-file.js';

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
