import { RequestError } from '../../request-error.js';
import { quoted } from './messages.js';

/** Reads stored bytes from an offset on into a target. */
type ReadBytes = (target: Uint8Array, offset: number) => Promise<void>;

/**
 * Reads elements of 4 bits, two in a byte with the first in its low half, as one a byte.
 * @param readBytes reads the packed bytes
 */
export function readingUnpacked(readBytes: ReadBytes): ReadBytes {
  return async (target, offset) => {
    const first = Math.floor(offset / 2);
    const packed = new Uint8Array(Math.ceil((offset + target.length) / 2) - first);
    await readBytes(packed, first);
    for (let i = 0; i < target.length; i++) {
      const at = offset + i - 2 * first;
      target[i] = (packed[at >> 1] >> (4 * (at & 1))) & 0xf;
    }
  };
}

/**
 * Elements of 4 bits, one a byte, as two in a byte.
 * @throws RequestError for an odd number of them, and for a byte that holds more
 */
export function packed(name: string, elements: Uint8Array): Uint8Array {
  if (elements.length % 2 !== 0)
    throw new RequestError(
      `tensor ${quoted(name)} has ${elements.length} elements of 4 bits, which do not fill whole bytes; give an even number`,
    );
  const bytes = new Uint8Array(elements.length / 2);
  elements.forEach((bits, i) => {
    if (bits > 0xf)
      throw new RequestError(
        `tensor ${quoted(name)} has ${bits} at element ${i}, which 4 bits do not hold`,
      );
    bytes[i >> 1] |= bits << (4 * (i & 1));
  });
  return bytes;
}
