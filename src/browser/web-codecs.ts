import type { Codecs } from '../io/tensors/index.js';
import { lazily } from '../reuse.js';

/** The polynomial of CRC-32 (ISO 3309), its bits reversed. */
const polynomial = 0xedb88320;

const remainders = lazily(() =>
  Uint32Array.from({ length: 256 }, (_, byte) => {
    let remainder = byte;
    for (let bit = 0; bit < 8; bit++)
      remainder = (remainder >>> 1) ^ ((remainder & 1) === 1 ? polynomial : 0);
    return remainder;
  }),
);

function crc32(bytes: Uint8Array, before: number): number {
  const table = remainders();
  let remainder = ~before;
  for (const byte of bytes) remainder = table[(remainder ^ byte) & 0xff] ^ (remainder >>> 8);
  return ~remainder >>> 0;
}

async function* inflateRaw(compressed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pieces = compressed[Symbol.asyncIterator]();
  let failure: { readonly error: unknown } | null = null;
  const inflater = new DecompressionStream('deflate-raw');
  const writer = inflater.writable.getWriter();
  const feed = async (): Promise<void> => {
    try {
      for (let piece; (piece = await pieces.next()).done !== true;)
        await writer.write(piece.value as Uint8Array<ArrayBuffer>);
      await writer.close();
    } catch (error) {
      failure ??= { error };
      await writer.abort(error).catch(() => undefined);
    }
  };
  const feeding = feed();
  const reader = inflater.readable.getReader();
  try {
    for (let piece; (piece = await reader.read()).done !== true;) yield piece.value;
  } catch (error) {
    // What the compressed pieces threw comes first: the stream only says that it was aborted.
    throw failure === null ? error : (failure as { readonly error: unknown }).error;
  } finally {
    await reader.cancel().catch(() => undefined);
    await feeding;
    await pieces.return?.();
  }
}

/** The codecs of a browser; of hashes it has none that takes bytes piece by piece, and everywhere. */
export function webCodecs(createSha256: Codecs['createSha256']): Codecs {
  return { inflateRaw, crc32, createSha256 };
}
