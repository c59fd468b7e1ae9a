import { type FileHandle, open, stat } from 'node:fs/promises';
import { RequestError } from '../request-error.js';
import { fileError } from './file-error.js';
import { printable, type ByteSource } from './tensors/index.js';

/** The most bytes asked of the operating system in one call, below its limit of 2^31 − 1. */
const transferBytes = 1 << 26;

/** A regular file open for reading at any position. */
export interface FileSource extends Omit<ByteSource, 'platform'> {
  /** When the file last changed before it was opened, in milliseconds since 1970. */
  readonly modified: number;
}

async function fill(
  handle: FileHandle,
  path: string,
  target: Uint8Array,
  position: number,
): Promise<void> {
  let filled = 0;
  while (filled < target.length) {
    const length = Math.min(target.length - filled, transferBytes);
    const { bytesRead } = await handle
      .read(target, filled, length, position + filled)
      .catch((error: unknown) => {
        throw fileError(error, path, 'read');
      });
    if (bytesRead === 0)
      throw new RequestError(
        `${printable(path)}: ended at byte ${position + filled} while it was being read; ` +
          'wait until its writer is done and read it again',
      );
    filled += bytesRead;
  }
}

/**
 * Opens a regular file for reading. Reading past the end never yields bytes, and no memory is taken
 * beyond what the caller brings.
 * @throws RequestError when the file cannot be opened or is a folder, pipe, socket or device
 */
export async function openByteSource(path: string): Promise<FileSource> {
  try {
    // Opening a pipe would wait for a writer, so the kind of file is asked first.
    const kind = await stat(path);
    if (kind.isDirectory()) throw new RequestError(`${printable(path)}: is a folder; name a file`);
    if (!kind.isFile())
      throw new RequestError(
        `${printable(path)}: is a pipe, socket or device; save to a regular file first`,
      );
    const handle = await open(path, 'r');
    const { size, mtimeMs } = await handle.stat().catch(async (error: unknown) => {
      await handle.close();
      throw error;
    });
    return {
      path,
      size,
      modified: mtimeMs,
      read: async (target, position) => {
        const fits =
          Number.isSafeInteger(position) && position >= 0 && position + target.length <= size;
        if (!fits)
          throw new RequestError(
            `${printable(path)}: is cut short: ${target.length} bytes at ${position} lie ` +
              `outside its ${size} bytes; copy or save it again`,
          );
        await fill(handle, path, target, position);
      },
      close: () =>
        handle.close().catch((error: unknown) => {
          throw fileError(error, path, 'close');
        }),
    };
  } catch (error) {
    throw fileError(error, path, 'open');
  }
}

/**
 * The text of a small UTF-8 file, a byte order mark left out.
 * @param mostBytes a larger file is refused unread
 * @throws RequestError when the file cannot be read, is no regular file, too large or no UTF-8
 */
export async function readText(path: string, mostBytes: number): Promise<string> {
  const where = printable(path);
  const source = await openByteSource(path);
  try {
    if (source.size > mostBytes)
      throw new RequestError(
        `${where}: has ${source.size} bytes, above the limit of ${mostBytes}; shorten it`,
      );
    const content = new Uint8Array(source.size);
    await source.read(content, 0);
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError(`${where}: is no valid UTF-8; save it as UTF-8 text`);
  } finally {
    await source.close();
  }
}
