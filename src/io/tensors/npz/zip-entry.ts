import type { ByteSource, Codecs } from '../tensor-file.js';
import { bytesAt, uint64At, type RefuseArchive } from './zip-end.js';

/** A member of an archive, as its directory entry describes it. */
export interface ZipEntry {
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
export async function readZipEntry(
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
