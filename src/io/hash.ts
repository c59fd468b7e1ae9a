import { createHash, type Hash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { openByteSource } from './byte-source.js';
import { fileError } from './file-error.js';
import { folderFiles } from './tensor-folder.js';

/** Number of bytes hashed at a time. */
const chunkBytes = 1 << 20;

async function hashContent(
  hash: Hash,
  path: string,
  heading: (size: number) => string,
): Promise<void> {
  const source = await openByteSource(path);
  try {
    hash.update(heading(source.size));
    const buffer = new Uint8Array(Math.min(chunkBytes, source.size));
    for (let position = 0; position < source.size; position += chunkBytes) {
      const chunk = buffer.subarray(0, Math.min(chunkBytes, source.size - position));
      await source.read(chunk, position);
      hash.update(chunk);
    }
  } finally {
    await source.close();
  }
}

/**
 * SHA-256 of a tensor file, in lower-case hexadecimal: of a file, that of its bytes, as sha256sum
 * prints it; of a folder, that of its `.npy` files and `metadata.json` in the order of their names,
 * each as name, zero byte, size in decimal digits, zero byte, content. Streams; needs 1 MiB.
 * @throws RequestError when the path cannot be read
 */
export async function hashTensorFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  const kind = await stat(path).catch((error: unknown) => {
    throw fileError(error, path, 'read');
  });
  if (!kind.isDirectory()) await hashContent(hash, path, () => '');
  else
    for (const name of await folderFiles(path))
      await hashContent(hash, join(path, name), (size) => `${name}\0${size}\0`);
  return hash.digest('hex');
}
