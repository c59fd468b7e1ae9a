import type { ByteSource } from '../tensor-file.js';

/** The place of a zip archive's directory, and its number of entries. */
export interface ZipEnd {
  readonly start: number;
  readonly entries: number;
}

/** Throws an Error that names a fault of an archive. */
export type RefuseArchive = (what: string) => never;

const [endBytes, locatorBytes, end64Bytes] = [22, 20, 56];
const [endSignature, locatorSignature, end64Signature] = [0x06054b50, 0x07064b50, 0x06064b50];
/** The longest comment after the end record. */
const maxComment = 0xffff;

/** Some bytes of an archive. */
export async function bytesAt(
  source: ByteSource,
  position: number,
  length: number,
): Promise<DataView> {
  const bytes = new Uint8Array(length);
  await source.read(bytes, position);
  return new DataView(bytes.buffer);
}

/** A 64-bit field; a number beyond fp64's whole numbers is outside every file, and so is its approximation. */
export function uint64At(view: DataView, offset: number): number {
  return Number(view.getBigUint64(offset, true));
}

/** The record of 64-bit fields that a locator before the end record points to; null if there is none. */
async function readEnd64(
  source: ByteSource,
  end: number,
  refuse: RefuseArchive,
): Promise<DataView | null> {
  if (end < locatorBytes) return null;
  const locator = await bytesAt(source, end - locatorBytes, locatorBytes);
  if (locator.getUint32(0, true) !== locatorSignature) return null;
  const record = await bytesAt(source, uint64At(locator, 8), end64Bytes);
  if (record.getUint32(0, true) !== end64Signature)
    refuse('the zip64 end record has a wrong signature');
  return record;
}

/**
 * Finds the directory of a zip archive by its end record (APPNOTE.TXT 6.3, 4.3.14 to 4.3.16), with or without zip64.
 * @param refuse called for an archive without one, or on several disks
 * @throws RequestError where the records point outside the file
 */
export async function findZipDirectory(source: ByteSource, refuse: RefuseArchive): Promise<ZipEnd> {
  const length = Math.min(source.size, endBytes + maxComment);
  const tail = await bytesAt(source, source.size - length, length);
  for (let at = length - endBytes; at >= 0; at--) {
    if (tail.getUint32(at, true) !== endSignature) continue;
    const comment = tail.getUint16(at + 20, true);
    const behind = length - endBytes - at;
    if (comment !== behind)
      refuse(`the end record announces a comment of ${comment} bytes, and ${behind} follow it`);
    const record = await readEnd64(source, source.size - length + at, refuse);
    const disk = record === null ? tail.getUint16(at + 4, true) : record.getUint32(16, true);
    if (disk !== 0) refuse(`it is disk ${disk} of several`);
    return record === null
      ? { entries: tail.getUint16(at + 10, true), start: tail.getUint32(at + 16, true) }
      : { entries: uint64At(record, 32), start: uint64At(record, 48) };
  }
  return refuse('it has no end record: it is cut short');
}
