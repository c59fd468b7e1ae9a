import { RequestError } from '../../../request-error.js';
import { printable, quoted } from '../messages.js';
import type { ByteSource, Codecs } from '../tensor-file.js';
import type { ZipMember } from './member.js';
import { bytesAt, findZipDirectory, uint64At, type RefuseArchive } from './zip-end.js';

/** A member of an archive, as its directory entry describes it. */
interface ZipEntry {
  readonly name: string;
  /** The name as it is stored. */
  readonly rawName: Uint8Array;
  readonly flags: number;
  readonly method: number;
  readonly crc32: number;
  readonly compressedSize: number;
  readonly uncompressedSize: number;
  /** The offset of its local header. */
  readonly localHeader: number;
}

/** Bytes of an entry of the directory before its name. */
const fixedBytes = 46;
const entrySignature = 0x02014b50;
/** The flag of names in UTF-8, and the flag of encryption that hides the directory too. */
const [utf8Names, strongEncryption] = [0x800, 0x40];
/** Extra fields: 64-bit sizes, and a name in UTF-8. */
const [zip64Field, unicodeName] = [0x0001, 0x7075];
/** The value of a 32-bit field whose real value is in the extra field of 64-bit sizes. */
const elsewhere = 0xffffffff;

/** The characters of code page 437, the encoding of names not marked as UTF-8. */
const codePage437 =
  '\u0000☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼' +
  ' !"#$%&\'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~⌂' +
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐' +
  '└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0';

/** The extra fields of an entry, the first of each kind. */
function extraFields(extra: Uint8Array, refuse: RefuseArchive): ReadonlyMap<number, Uint8Array> {
  const view = new DataView(extra.buffer, extra.byteOffset, extra.byteLength);
  const fields = new Map<number, Uint8Array>();
  for (let at = 0; at + 4 <= extra.length;) {
    const kind = view.getUint16(at, true);
    const end = at + 4 + view.getUint16(at + 2, true);
    if (end > extra.length) refuse('an extra field is longer than all of them');
    if (!fields.has(kind)) fields.set(kind, extra.subarray(at + 4, end));
    at = end;
  }
  return fields;
}

/** The name of a member: from its UTF-8 field if that belongs to the stored name, else decoded by the flag. */
function nameOf(
  rawName: Uint8Array,
  flags: number,
  unicode: Uint8Array | undefined,
  { crc32 }: Codecs,
): string {
  const utf8 = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  // APPNOTE 4.6.9: version 1, the CRC-32 of the stored name, the name.
  if (unicode !== undefined && unicode.length >= 6 && unicode[0] === 1) {
    const view = new DataView(unicode.buffer, unicode.byteOffset, unicode.byteLength);
    if (view.getUint32(1, true) === crc32(rawName, 0)) return utf8(unicode.subarray(5));
  }
  if ((flags & utf8Names) !== 0) return utf8(rawName);
  return Array.from(rawName, (byte) => codePage437[byte]).join('');
}

/**
 * Reads an entry of the directory (APPNOTE.TXT 6.3, 4.3.12) and its 64-bit fields (4.5.3).
 * @param refuse called for an entry that breaks the format
 * @returns the entry, and the offset of the next one
 * @throws RequestError where it leaves the file
 */
async function readZipEntry(
  source: ByteSource,
  position: number,
  refuse: RefuseArchive,
): Promise<{ readonly entry: ZipEntry; readonly next: number }> {
  const view = await bytesAt(source, position, fixedBytes);
  const signature = view.getUint32(0, true);
  if (signature !== entrySignature)
    refuse(`an entry of the directory has the signature 0x${signature.toString(16)}`);
  const flags = view.getUint16(8, true);
  if ((flags & strongEncryption) !== 0) refuse('it is encrypted, names and all');
  const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((at) => view.getUint16(at, true));
  const rest = await bytesAt(source, position + fixedBytes, nameBytes + extraBytes);
  const bytes = new Uint8Array(rest.buffer);
  const rawName = bytes.subarray(0, nameBytes);
  const fields = extraFields(bytes.subarray(nameBytes), refuse);
  const wide = fields.get(zip64Field) ?? new Uint8Array(0);
  const wideView = new DataView(wide.buffer, wide.byteOffset, wide.byteLength);
  let used = 0;
  // The wide values come in this order, each only where the narrow field says that it is elsewhere.
  const value = (at: number, what: string): number => {
    const narrow = view.getUint32(at, true);
    if (narrow !== elsewhere || !fields.has(zip64Field)) return narrow;
    if (used + 8 > wide.length) return refuse(`a zip64 field lacks the ${what}`);
    used += 8;
    return uint64At(wideView, used - 8);
  };
  const uncompressedSize = value(24, 'uncompressed size');
  const compressedSize = value(20, 'compressed size');
  const localHeader = value(42, 'place of the member');
  const entry = {
    name: nameOf(rawName, flags, fields.get(unicodeName), source.platform.codecs),
    rawName,
    flags,
    method: view.getUint16(10, true),
    crc32: view.getUint32(16, true),
    compressedSize,
    uncompressedSize,
    localHeader,
  };
  return { entry, next: position + fixedBytes + nameBytes + extraBytes + commentBytes };
}

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
