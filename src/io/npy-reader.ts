import { basename } from 'node:path';
import type { ByteSource } from './byte-source.js';
import { checkDeclarations } from './dtype.js';
import type { DeclaredFormats } from './dtype.js';
import { npyArray } from './npy-array.js';
import { tensorFile } from './tensor-file.js';
import type { TensorFile } from './tensor-file.js';

/** The name of the tensor in an npy file or member: its base name without the ending `.npy`. */
export function npyTensorName(fileName: string): string {
  return fileName.replace(/\.npy$/, '');
}

/**
 * The one tensor of an npy file, named after the file.
 * @param source open on the file; closed with the returned TensorFile
 * @throws RequestError when the file breaks the format, or holds objects or records
 */
export async function openNpy(source: ByteSource, declared: DeclaredFormats): Promise<TensorFile> {
  const { path, size, read, close } = source;
  const name = npyTensorName(basename(path));
  checkDeclarations(path, declared, new Set([name]));
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
  return tensorFile(path, metadata, [tensor], close);
}
