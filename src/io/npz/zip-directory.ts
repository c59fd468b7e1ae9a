import yauzl from 'yauzl';
import type { Entry, ZipFile } from 'yauzl';
import { RequestError } from '../../request-error.js';
import type { ByteSource } from '../byte-source.js';
import { printable, quoted } from '../messages.js';
import type { ZipMember } from './member.js';

/** The most members of an archive. */
const maxMembers = 1_000_000;

/** The most that deflate can shrink: 258 bytes into 2 bits (RFC 1951). */
const deflateRatio = 1032;

const stored = 0;
const deflated = 8;

const damaged = 'the archive is damaged: save it again with numpy.savez';

/**
 * Gives yauzl the archive through a ByteSource, which answers a position outside the file with an
 * error; node:fs would throw on one beyond 2^53, from within a callback and past every handler.
 */
class ArchiveReader extends yauzl.RandomAccessReader {
  constructor(private readonly source: ByteSource) {
    super();
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    this.source.read(buffer.subarray(offset, offset + length), position).then(
      () => callback(null),
      (error: Error) => callback(error),
    );
  }

  override close(callback: (error: Error | null) => void): void {
    // The source outlives the directory: whoever opened it closes it.
    setImmediate(callback, null);
  }
}

/** The raw name as text, backslashes kept: names are never used as paths. */
function memberName(entry: Entry): string {
  const raw = entry.fileName as unknown as Buffer;
  return yauzl.getFileNameLowLevel(entry.generalPurposeBitFlag, raw, entry.extraFields, true);
}

/**
 * Where a member's bytes lie, after checking what the directory says of it.
 * @param where how a message begins, naming the file and the tensor
 * @throws RequestError when it is encrypted, compressed by another method than deflate, inflates
 * beyond what deflate can, or its local header disagrees with the directory
 */
async function memberOf(archive: ZipFile, entry: Entry, where: string): Promise<ZipMember> {
  const refuse = (what: string, mend: string): never => {
    throw new RequestError(`${where}: ${what}; ${mend}`);
  };
  const { compressionMethod, compressedSize, uncompressedSize } = entry;
  if (entry.isEncrypted()) refuse('is encrypted', 'save it without a password');
  if (compressionMethod !== stored && compressionMethod !== deflated)
    refuse(`is compressed by method ${compressionMethod}`, 'save it with numpy.savez');
  if (uncompressedSize > compressedSize * deflateRatio)
    refuse(
      `declares ${uncompressedSize} bytes, which cannot be deflated into ${compressedSize}`,
      damaged,
    );
  const local = await archive.readLocalFileHeaderPromise(entry);
  const raw = entry.fileName as unknown as Buffer;
  if (Buffer.compare(local.fileName, raw) !== 0)
    refuse('has another name in its local header than in the directory of the archive', damaged);
  if (local.compressionMethod !== compressionMethod)
    refuse('has another compression in its local header than in the directory', damaged);
  return {
    dataStart: local.fileDataStart,
    compressedSize,
    uncompressedSize,
    crc32: entry.crc32,
    deflated: compressionMethod === deflated,
  };
}

/** The members of an archive: every name, and for the wanted ones where their bytes lie. */
interface ZipDirectory {
  readonly names: ReadonlySet<string>;
  readonly members: ReadonlyMap<string, ZipMember>;
}

/**
 * Reads the directory of a zip archive (zip64 included). Nothing is extracted, and names are only
 * names: one that points outside its folder is as good as any other.
 * @param wanted whether a member of that name is to be located
 * @param where how a message about such a member begins
 * @throws RequestError when the archive is damaged, or has one name twice
 */
export async function readZipDirectory(
  source: ByteSource,
  wanted: (name: string) => boolean,
  where: (name: string) => string,
): Promise<ZipDirectory> {
  const names = new Set<string>();
  const members = new Map<string, ZipMember>();
  try {
    const reader = new ArchiveReader(source);
    const archive = await yauzl.fromRandomAccessReaderPromise(reader, source.size, {
      autoClose: false,
      decodeStrings: false,
      validateEntrySizes: true,
    });
    try {
      for await (const entry of archive.eachEntry()) {
        const name = memberName(entry);
        if (names.has(name))
          throw new RequestError(
            `${printable(source.path)}: holds two members named ${quoted(name)}; remove one`,
          );
        if (names.size === maxMembers)
          throw new RequestError(
            `${printable(source.path)}: holds more than ${maxMembers} members; split it`,
          );
        names.add(name);
        if (wanted(name)) members.set(name, await memberOf(archive, entry, where(name)));
      }
    } finally {
      archive.close();
    }
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const message = printable((error as Error).message);
    throw new RequestError(`${printable(source.path)}: as a zip archive, ${message}; ${damaged}`);
  }
  return { names, members };
}
