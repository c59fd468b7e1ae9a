import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RequestError } from '../request-error.js';

/**
 * Makes a folder of a new name in the system's folder for temporary files, which TMPDIR names.
 * @throws RequestError when it cannot be made
 */
export async function createTemporaryFolder(): Promise<string> {
  const parent = tmpdir();
  return mkdtemp(join(parent, 'flashproof-')).catch((error: NodeJS.ErrnoException) => {
    throw new RequestError(
      `${parent}: no temporary folder can be made in it (${error.code ?? error.message}); ` +
        'set TMPDIR to a folder that can be written',
    );
  });
}
