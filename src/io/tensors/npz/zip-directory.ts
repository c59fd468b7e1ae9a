import { RequestError } from '../../../request-error.js';
import type { ByteSource } from '../tensor-file.js';
import { printable, quoted } from '../messages.js';
import type { ZipMember } from './member.js';
import { bytesAt, findZipDirectory, type RefuseArchive } from './zip-end.js';
import { readZipEntry, type ZipEntry } from './zip-entry.js';

/** The most members of an archive. */
const maxMembers = 1_000_000;

/** The largest ratio of deflate: 258 bytes from 2 bits (RFC 1951). */
const deflateRatio = 1032;

const stored = 0;
const deflated = 8;
const encrypted = 1;

const localSignature = 0x04034b50;
/** Bytes of a local header before the name. */
const localBytes = 30;

const damaged = 'the archive is damaged: save it again with numpy.savez';

/** The local header of a member. */
async function readLocalHeader(
  source: ByteSource,
  { localHeader, compressedSize }: ZipEntry,
  refuse: RefuseArchive,
) {
  const view = await bytesAt(source, localHeader, localBytes);
  const signature = view.getUint32(0, true);
  if (signature !== localSignature)
    refuse(`a member has a header of the signature 0x${signature.toString(16)}`);
  const nameBytes = view.getUint16(26, true);
  const name = await bytesAt(source, localHeader + localBytes, nameBytes);
  const dataStart = localHeader + localBytes + nameBytes + view.getUint16(28, true);
  if (dataStart + compressedSize > source.size)
    refuse(
      `a member of ${compressedSize} bytes at ${dataStart} lies outside the ${source.size} bytes of the file`,
    );
  return {
    name: new Uint8Array(name.buffer),
    method: view.getUint16(8, true),
    dataStart,
  };
}

/** Whether two names are the same bytes. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/**
 * The place of a member's bytes, after checking its entry in the directory.
 * @param where the beginning of a message, naming the file and the tensor
 * @throws RequestError when it is encrypted, compressed by another method than deflate, inflates beyond
 * what deflate can, or its local header disagrees with the directory
 */
async function memberOf(
  source: ByteSource,
  entry: ZipEntry,
  where: string,
  refuseArchive: RefuseArchive,
): Promise<ZipMember> {
  const refuse = (what: string, mend: string): never => {
    throw new RequestError(`${where}: ${what}; ${mend}`);
  };
  const { flags, method, compressedSize, uncompressedSize, rawName, crc32 } = entry;
  if ((flags & encrypted) !== 0) refuse('is encrypted', 'save it without a password');
  if (method !== stored && method !== deflated)
    refuse(`is compressed by method ${method}`, 'save it with numpy.savez');
  if (uncompressedSize > compressedSize * deflateRatio)
    refuse(
      `declares ${uncompressedSize} bytes, which cannot be deflated into ${compressedSize}`,
      damaged,
    );
  const local = await readLocalHeader(source, entry, refuseArchive);
  if (!isSame(local.name, rawName))
    refuse('has another name in its local header than in the directory of the archive', damaged);
  if (local.method !== method)
    refuse('has another compression in its local header than in the directory', damaged);
  const { dataStart } = local;
  return { dataStart, compressedSize, uncompressedSize, crc32, deflated: method === deflated };
}

/** The members of an archive: every name, and the places of the wanted ones. */
interface ZipDirectory {
  readonly names: ReadonlySet<string>;
  readonly members: ReadonlyMap<string, ZipMember>;
}

/**
 * Reads the directory of a zip archive (zip64 included). Nothing is extracted, and names are only names:
 * one that points outside its folder is as good as any other.
 * @param wanted whether to locate a member of that name
 * @param where the beginning of a message about such a member
 * @throws RequestError when the archive is damaged, or has one name twice
 */
export async function readZipDirectory(
  source: ByteSource,
  wanted: (name: string) => boolean,
  where: (name: string) => string,
): Promise<ZipDirectory> {
  const archive = printable(source.path);
  const refuse: RefuseArchive = (what) => {
    throw new RequestError(`${archive}: as a zip archive, ${printable(what)}; ${damaged}`);
  };
  const names = new Set<string>();
  const members = new Map<string, ZipMember>();
  const { start, entries } = await findZipDirectory(source, refuse);
  let position = start;
  for (let read = 0; read < entries; read++) {
    const { entry, next } = await readZipEntry(source, position, refuse);
    position = next;
    const { name, method, compressedSize, uncompressedSize } = entry;
    if (names.has(name))
      throw new RequestError(`${archive}: holds two members named ${quoted(name)}; remove one`);
    if (names.size === maxMembers)
      throw new RequestError(`${archive}: holds more than ${maxMembers} members; split it`);
    // Twelve bytes of an encrypted member are the cipher's own.
    const own = compressedSize - ((entry.flags & encrypted) !== 0 ? 12 : 0);
    if (method === stored && own !== uncompressedSize)
      refuse(`a size mismatch: ${own} stored bytes are said to be ${uncompressedSize}`);
    names.add(name);
    if (wanted(name)) members.set(name, await memberOf(source, entry, where(name), refuse));
  }
  return { names, members };
}
