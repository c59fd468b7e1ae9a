import { readFileSync, statSync } from 'node:fs';
import { plainText } from '../words/index.js';
import { RequestError } from '../request-error.js';

/** Larger files are refused unread: a text of them could not be held, and no campaign writes as much. */
const mostBytes = 2 ** 28;

/** The most characters of a value from a file that a message repeats. */
const mostCharacters = 80;

/** A value from a file as a message of one line repeats it. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'missing');
  return plainText(text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text);
}

/** A path as a message of one line repeats it. */
export function shownPath(path: string): string {
  return plainText(path);
}

/**
 * The bytes of a regular file.
 * @throws RequestError for a pipe, which to read would wait for a writer, any other that is no regular
 * file, one of more than 256 MiB, and one that cannot be read
 */
export function readWholeFile(path: string): Buffer {
  const where = shownPath(path);
  try {
    const kind = statSync(path);
    if (kind.isDirectory())
      throw new RequestError(`${where}: cannot be read (EISDIR): it is a folder; name a file`);
    if (!kind.isFile())
      throw new RequestError(`${where}: is a pipe, socket or device; save to a regular file first`);
    if (kind.size > mostBytes)
      throw new RequestError(
        `${where}: has ${kind.size} bytes, above the limit of ${mostBytes}; use more shards`,
      );
    return readFileSync(path);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new RequestError(`${where}: cannot be read (${code ?? message}); check the path`);
  }
}
