import { RequestError } from '../request-error.js';
import { openByteSource } from './byte-source.js';
import { printable } from './message-text.js';

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
