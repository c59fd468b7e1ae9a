import { randomBytes } from 'node:crypto';
import { mkdir, open, realpath, rename, stat, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RequestError } from '../request-error.js';
import { fileError } from './file-error.js';
import { printable } from './tensors/index.js';

/**
 * Makes one folder, in an existing folder. A folder that is already there is well, whatever else
 * forbids making one: some systems report a read-only file system before they look.
 */
async function makeIn(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const found = await stat(path).catch(() => null);
    if (found === null) throw error;
    if (!found.isDirectory()) throw Object.assign(new Error(path), { code: 'ENOTDIR' });
  }
}

async function makeAll(path: string): Promise<void> {
  try {
    await makeIn(path);
  } catch (error) {
    const parent = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === path) throw error;
    await makeAll(parent);
    await makeIn(path);
  }
}

/**
 * Makes a folder, and those above it, where there is none. Node's own recursive mkdir says "no such
 * file" of a read-only file system, and a user would look for a wrong path.
 * @param option the one that names it, or a file in it
 * @throws RequestError when it cannot be made: the line names the folder, the option and the reason
 */
export async function makeFolder(path: string, option: string): Promise<void> {
  await makeAll(path).catch((error: unknown) => {
    throw fileError(error, path, `make the folder of ${option}`);
  });
}

/** The content of a file, in pieces or whole; a string is written as UTF-8. */
export type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array> | string;

/** The most bytes handed to the operating system in one call, below its limit of 2^31 − 1. */
const transferBytes = 1 << 26;

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  let written = 0;
  while (written < chunk.length) {
    const length = Math.min(chunk.length - written, transferBytes);
    written += (await handle.write(chunk, written, length)).bytesWritten;
  }
}

/** The mode of the file to be replaced, or null when there is none. */
async function replacedMode(path: string): Promise<number | null> {
  const existing = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (existing === null) return null;
  if (existing.isDirectory())
    throw new RequestError(`${printable(path)}: cannot be written: it is a folder; name a file`);
  if (!existing.isFile())
    throw new RequestError(
      `${printable(path)}: cannot be written: it is a pipe, socket or device; name a regular file`,
    );
  return existing.mode & 0o777;
}

/** The file that a path leads to through symbolic links; the path itself when there is none yet. */
async function followed(path: string): Promise<string> {
  return realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return path;
    throw error;
  });
}

/** Makes the rename itself durable, where the system lets a folder be synchronized. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  if (handle === null) return;
  await handle.sync().catch(() => undefined);
  await handle.close().catch(() => undefined);
}

async function openTemporary(
  folder: string,
  path: string,
  mode: number,
): Promise<[string, FileHandle]> {
  const temporary = join(folder, `.flashproof-${randomBytes(8).toString('hex')}.tmp`);
  try {
    return [temporary, await open(temporary, 'wx', mode)];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new RequestError(
        `${printable(path)}: cannot be written: its folder ${printable(folder)} does not exist; ` +
          'create it first',
      );
    throw fileError(error, path, 'write');
  }
}

export interface WriteOptions {
  /**
   * Whether the content must survive a loss of power, which means waiting for the disk; default true.
   */
  readonly durable?: boolean;
}

/**
 * Writes a file so that its path holds either all of the new content or all of the old: into a temporary
 * file of the same folder, synchronized to the disk, then renamed. A symbolic link stays and the file
 * behind it is replaced; a replaced file keeps its permissions. When the chunks or the disk fail, the
 * temporary file is removed and the error passed on.
 * @throws RequestError when the folder is missing or read-only, the path is a folder or a device, or the
 * file system fails
 */
export async function atomicWriteFile(
  path: string,
  chunks: Chunks,
  { durable = true }: WriteOptions = {},
): Promise<void> {
  const failed = (error: unknown): never => {
    throw fileError(error, path, 'write');
  };
  if (path === '') throw new RequestError('the path to write is empty; name a file');
  const target = await followed(path).catch(failed);
  const mode = await replacedMode(target).catch(failed);
  const folder = dirname(target);
  const [temporary, handle] = await openTemporary(folder, path, mode ?? 0o666);
  try {
    try {
      if (mode !== null) await handle.chmod(mode).catch(failed);
      for await (const chunk of typeof chunks === 'string' ? [Buffer.from(chunks)] : chunks)
        await writeAll(handle, chunk).catch(failed);
      if (durable) await handle.sync().catch(failed);
    } finally {
      await handle.close().catch(failed);
    }
    await rename(temporary, target).catch(failed);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  if (durable) await syncFolder(folder);
}
