import { RequestError } from '../request-error.js';
import type { ReadBytes } from './column-major.js';
import { readingOf } from './dtype.js';
import type { DeclaredFormats } from './dtype.js';
import { tensorIn } from './message-text.js';
import { readNpyHeader } from './npy-header.js';
import type { StoredTensor } from './tensor-file.js';

/** Where an npy array comes from and how its elements are to be read. */
export interface NpyArraySource {
  readonly path: string;
  readonly name: string;
  /** Reads bytes of the array, counted from its magic. */
  readonly read: ReadBytes;
  /** Bytes of the whole array. */
  readonly totalBytes: number;
  readonly declared: DeclaredFormats;
  readonly metadata: ReadonlyMap<string, string>;
  /** Whether an array of objects or records is listed, unreadable, beside others, or refused. */
  readonly compound: 'listed' | 'refused';
}

/**
 * The tensor of one npy array, its header read and checked.
 * @throws RequestError when the array breaks the format, its declared format is impossible, or it is
 * one of objects or records and those are refused
 */
export async function npyArray(source: NpyArraySource): Promise<StoredTensor> {
  const { path, name, read, totalBytes, declared, metadata } = source;
  const header = await readNpyHeader(read, totalBytes, tensorIn(path, name));
  const { descr, dtype, shape, elements, byteLength, dataStart, columnMajor } = header;
  const reading = readingOf(path, name, descr, dtype, declared, metadata);
  if (dtype.bits === null && reading.refusal !== null && source.compound === 'refused')
    throw new RequestError(reading.refusal);
  return {
    entry: { name, dtype: descr, format: reading.format, shape, elements, byteLength },
    reading,
    bigEndian: dtype.bigEndian,
    columnMajor,
    readBytes: (target, offset) => read(target, dataStart + offset),
  };
}
