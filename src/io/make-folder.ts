import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileError } from './file-error.js';

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
