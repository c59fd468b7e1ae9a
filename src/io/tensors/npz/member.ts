import { RequestError } from '../../../request-error.js';
import type { ByteSource } from '../tensor-file.js';
import type { ReadBytes } from '../column-major.js';

/** One member of a zip archive, as its directory describes it. */
export interface ZipMember {
  readonly dataStart: number;
  readonly compressedSize: number;
  readonly uncompressedSize: number;
  readonly crc32: number;
  readonly deflated: boolean;
}

/** Number of bytes read at a time. */
const chunkBytes = 1 << 18;

const damaged = 'the archive is damaged: copy or save it again';

async function* storedChunks(source: ByteSource, member: ZipMember): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < member.compressedSize; offset += chunkBytes) {
    const chunk = new Uint8Array(Math.min(chunkBytes, member.compressedSize - offset));
    await source.read(chunk, member.dataStart + offset);
    yield chunk;
  }
}

/** The inflated bytes of a member, piece by piece; abandoning the generator frees the inflater. */
async function* inflatedChunks(
  source: ByteSource,
  member: ZipMember,
  where: string,
): AsyncGenerator<Uint8Array> {
  try {
    yield* source.platform.codecs.inflateRaw(storedChunks(source, member));
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError(`${where}: does not inflate (${(error as Error).message}); ${damaged}`);
  }
}

/** Reads a deflated member from front to back. */
interface Inflation {
  /** Offset of the next byte that `readTo` can give. */
  readonly position: () => number;
  readonly read: ReadBytes;
  readonly abandon: () => Promise<void>;
}

function inflation(source: ByteSource, member: ZipMember, where: string): Inflation {
  const chunks = inflatedChunks(source, member, where);
  const { crc32 } = source.platform.codecs;
  let chunk: Uint8Array = new Uint8Array(0);
  let used = 0;
  let position = 0;
  let inflated = 0;
  let checksum = 0;

  const next = async (): Promise<boolean> => {
    const { done, value } = await chunks.next();
    if (done === true) return false;
    inflated += value.length;
    if (inflated > member.uncompressedSize)
      throw new RequestError(
        `${where}: inflates to more than the ${member.uncompressedSize} bytes it declares; ${damaged}`,
      );
    checksum = crc32(value, checksum);
    chunk = value;
    used = 0;
    return true;
  };

  const take = async (length: number, target: Uint8Array | null): Promise<void> => {
    for (let taken = 0; taken < length;) {
      if (used === chunk.length) {
        if (await next()) continue;
        throw new RequestError(
          `${where}: inflates to only ${inflated} of the ${member.uncompressedSize} bytes it ` +
            `declares; ${damaged}`,
        );
      }
      const piece = chunk.subarray(used, used + length - taken);
      target?.set(piece, taken);
      taken += piece.length;
      used += piece.length;
      position += piece.length;
    }
  };

  const checkEnd = async (): Promise<void> => {
    while (await next());
    if (checksum !== member.crc32)
      throw new RequestError(`${where}: its CRC-32 is wrong; ${damaged}`);
  };

  return {
    position: () => position,
    read: async (target, offset) => {
      await take(offset - position, null);
      await take(target.length, target);
      if (position === member.uncompressedSize) await checkEnd();
    },
    abandon: async () => {
      await chunks.return(undefined);
    },
  };
}

/** A member of an archive, readable by ranges. */
export interface MemberReader {
  /** Fills the target with uncompressed bytes of the member from an offset on. */
  readonly read: ReadBytes;
  /** Ends a reading from the front, as of a header: stops an inflation that waits to be continued. */
  readonly release: () => Promise<void>;
}

/**
 * Reads a stored member at any offset. When all of it has been read in order, from the front or from
 * where the reading that was released ended, its CRC-32 is checked, each time.
 */
function storedReader(source: ByteSource, member: ZipMember, where: string): MemberReader {
  const { crc32 } = source.platform.codecs;
  const front = { position: 0, checksum: 0 };
  let released = front;
  let { position, checksum } = front;
  return {
    read: async (target, offset) => {
      if (offset + target.length > member.uncompressedSize)
        throw new RequestError(`${where}: is cut short; ${damaged}`);
      await source.read(target, member.dataStart + offset);
      for (const start of [released, front])
        if (offset === start.position) ({ position, checksum } = start);
      if (offset !== position) return;
      checksum = crc32(target, checksum);
      position += target.length;
      if (position === member.uncompressedSize && checksum !== member.crc32)
        throw new RequestError(`${where}: its CRC-32 is wrong; ${damaged}`);
    },
    release: async () => {
      released = { position, checksum };
    },
  };
}

/**
 * Reads a deflated member by inflating from the front and skipping; a reading that lies ahead of the
 * last one continues from there, so that ascending ranges inflate the member once. At its end the
 * size and the CRC-32 are checked.
 */
function deflatedReader(source: ByteSource, member: ZipMember, where: string): MemberReader {
  let waiting: Inflation | null = null;
  const release = async (): Promise<void> => {
    const abandoned = waiting;
    waiting = null;
    await abandoned?.abandon();
  };
  return {
    read: async (target, offset) => {
      if (waiting !== null && waiting.position() > offset) await release();
      // Taken out while in use: a reading that overlaps in time starts an inflation of its own.
      const current = waiting ?? inflation(source, member, where);
      waiting = null;
      try {
        await current.read(target, offset);
      } catch (error) {
        await current.abandon();
        throw error;
      }
      await release();
      waiting = current;
    },
    release,
  };
}

/**
 * A reader of one member's uncompressed bytes.
 * @param where the beginning of a message, naming the file and the tensor
 */
export function memberReader(source: ByteSource, member: ZipMember, where: string): MemberReader {
  return (member.deflated ? deflatedReader : storedReader)(source, member, where);
}
