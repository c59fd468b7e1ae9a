import {
  openTensorSource,
  printable,
  type ByteSource,
  type Codecs,
  type Platform,
  type TensorFiles,
} from '../io/tensors/index.js';
import { RequestError } from '../request-error.js';

/** Number of bytes hashed at a time. */
const chunkBytes = 1 << 22;

/** Files that a page was given, by name. */
export interface BlobFiles extends TensorFiles {
  /**
   * SHA-256 of a file's bytes, in lower-case hexadecimal, as sha256sum prints it.
   * @throws RequestError where there is no such file, or it cannot be read
   */
  readonly hash: (path: string) => Promise<string>;
}

/** A blob as bytes readable at any position. */
function blobSource(path: string, blob: Blob, platform: Platform): ByteSource {
  const where = printable(path);
  return {
    path,
    size: blob.size,
    platform,
    read: async (target, position) => {
      const end = position + target.length;
      if (!Number.isSafeInteger(position) || position < 0 || end > blob.size)
        throw new RequestError(
          `${where}: is cut short: ${target.length} bytes at ${position} lie outside its ${blob.size} bytes; copy or save it again`,
        );
      try {
        target.set(new Uint8Array(await blob.slice(position, end).arrayBuffer()));
      } catch (error) {
        throw new RequestError(
          `${where}: cannot read (${printable((error as Error).message)}); choose the file again`,
        );
      }
    },
    close: async () => undefined,
  };
}

/** Blobs as tensor files: those of the map can be named beside one another. */
export function blobFiles(blobs: ReadonlyMap<string, Blob>, codecs: Codecs): BlobFiles {
  const source = (path: string): ByteSource => {
    const blob = blobs.get(path);
    if (blob === undefined)
      throw new RequestError(
        `${printable(path)}: is not among the files of this page; add it to them`,
      );
    return blobSource(path, blob, { codecs, files });
  };
  const files: BlobFiles = {
    has: (path) => blobs.has(path),
    open: async (path, options) => openTensorSource(source(path), options),
    hash: async (path) => {
      const { size, read } = source(path);
      const hash = codecs.createSha256();
      for (let position = 0; position < size; position += chunkBytes) {
        const chunk = new Uint8Array(Math.min(chunkBytes, size - position));
        await read(chunk, position);
        hash.update(chunk);
      }
      return hash.digest();
    },
  };
  return files;
}
