import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { crc32, createInflateRaw } from 'node:zlib';
import { openByteSource } from './byte-source.js';
import { fileError } from './file-error.js';
import { openTensorFolder } from './tensor-folder.js';
import {
  declaringFile,
  renamedFile,
  openTensorSource,
  rawTensorFile,
  type Codecs,
  type DeclaredFormats,
  type DeclaringFile,
  type OpenOptions,
  type Platform,
  type RawTensor,
  type TensorFile,
  type TensorFiles,
} from './tensors/index.js';

/** Bytes inflated at a time. */
const chunkBytes = 1 << 18;

/** Codecs of Node.js, by zlib and OpenSSL. */
const codecs: Codecs = {
  inflateRaw: async function* (compressed) {
    const inflater = createInflateRaw({ chunkSize: chunkBytes });
    // Errors reach the loop below through the inflater; this promise only must not go unhandled.
    const feeding = pipeline(Readable.from(compressed, { objectMode: false }), inflater).catch(
      () => undefined,
    );
    try {
      for await (const chunk of inflater) yield chunk as Uint8Array;
    } finally {
      inflater.destroy();
      await feeding;
    }
  },
  crc32: (bytes, before) => crc32(bytes, before),
  createSha256: () => {
    const hash = createHash('sha256');
    return { update: (bytes) => hash.update(bytes), digest: () => hash.digest('hex') };
  },
};

/** The files of the machine. */
export const machineFiles: TensorFiles = { has: existsSync, open: openTensorFile };

const platform: Platform = { codecs, files: machineFiles };

/**
 * Opens a safetensors, npy or npz file, identified by content and not by name, or a folder of npy
 * files. All headers are read and checked; elements are not read yet. Only regular files are opened.
 * @throws RequestError when the path cannot be read, the content is none of these or breaks its
 * format, or a declared format is impossible
 */
export async function openTensorFile(path: string, options: OpenOptions = {}): Promise<TensorFile> {
  const kind = await stat(path).catch((error: unknown) => {
    throw fileError(error, path, 'open');
  });
  if (kind.isDirectory()) return openTensorFolder({ path, platform }, options);
  return openTensorSource({ ...(await openByteSource(path)), platform }, options);
}

/**
 * Tensors in memory as a file of them; nothing has to be closed.
 * @param path begins messages
 * @param metadata the notes of the file about itself
 * @throws RequestError for a tensor that no file has, and for formats that do not fit
 */
export function openRawTensors(
  path: string,
  tensors: readonly RawTensor[],
  metadata: ReadonlyMap<string, string>,
  options: OpenOptions = {},
): TensorFile {
  return rawTensorFile({ path, platform }, tensors, metadata, options);
}

/**
 * Opens a tensor file, and with the same declared formats each file that is opened beside it. A declaration may be of a
 * tensor of any of them, which `checkDeclared` checks when all are open.
 * @param places where tensors are, by the names that they get, as for `renamedFile`
 * @throws RequestError as `openTensorFile` does
 */
export async function openDeclaring(
  path: string,
  formats: DeclaredFormats,
  places: Readonly<Record<string, string>> = {},
): Promise<DeclaringFile> {
  const file = await openTensorFile(path, { formats, isOneOfSeveral: true });
  try {
    return renamedFile(declaringFile(file, formats), places);
  } catch (error) {
    await file.close();
    throw error;
  }
}
