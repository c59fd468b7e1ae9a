import { RequestError } from '../../../request-error.js';
import { checkDeclarations, type OpenOptions, readingOf } from '../dtype.js';
import { printable } from '../messages.js';
import { maxHeaderBytes, parseSafetensorsHeader } from './header.js';
import { tensorFile } from '../read-tensors.js';
import type { ByteSource, TensorFile } from '../tensor-file.js';
import { readingUnpacked } from '../element-storage.js';

/** Bytes of the header's length, which begins the file. */
const lengthBytes = 8;

async function readHeaderText(source: ByteSource): Promise<{ text: string; bytes: number }> {
  const where = printable(source.path);
  if (source.size < lengthBytes)
    throw new RequestError(
      `${where}: has only ${source.size} bytes, too few for a safetensors file; copy or save it again`,
    );
  const prefix = new Uint8Array(lengthBytes);
  await source.read(prefix, 0);
  // The length is a hostile 64-bit number until it is compared, so it stays a BigInt until then.
  const declared = new DataView(prefix.buffer).getBigUint64(0, true);
  const room = source.size - lengthBytes;
  if (declared > BigInt(maxHeaderBytes))
    throw new RequestError(
      `${where}: claims a header of ${declared} bytes, above the limit of ${maxHeaderBytes}; ` +
        'it is damaged or no safetensors file: save it again',
    );
  if (declared > BigInt(room))
    throw new RequestError(
      `${where}: claims a header of ${declared} bytes, but only ${room} follow; ` +
        'the file is cut short: copy or save it again',
    );
  const header = new Uint8Array(Number(declared));
  await source.read(header, lengthBytes);
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return { text: decoder.decode(header), bytes: header.length };
  } catch {
    throw new RequestError(
      `${where}: the safetensors header is no valid UTF-8; save it again with a safetensors library`,
    );
  }
}

/**
 * The tensors of a safetensors file. The whole header is checked before anything is returned.
 * @param source open on the file; closed with the returned TensorFile
 * @throws RequestError when the file breaks a rule of the format
 */
export async function openSafetensors(
  source: ByteSource,
  options: OpenOptions,
): Promise<TensorFile> {
  const { formats: declared = {} } = options;
  const { path } = source;
  const { text, bytes } = await readHeaderText(source);
  const dataStart = lengthBytes + bytes;
  const { metadata, tensors } = parseSafetensorsHeader(path, text, source.size - dataStart);
  checkDeclarations(path, options, new Set(tensors.map(({ name }) => name)));
  const stored = tensors.map(({ name, dtype, facts, shape, elements, begin, end }) => {
    const reading = readingOf({ path, name, dtype }, facts, declared, metadata);
    const byteLength = end - begin;
    const readBytes = (target: Uint8Array, offset: number) =>
      source.read(target, dataStart + begin + offset);
    return {
      entry: { name, dtype, format: reading.format, shape, elements, byteLength },
      reading,
      dtype: facts,
      bigEndian: false,
      columnMajor: false,
      readBytes: facts.bits === 4 ? readingUnpacked(readBytes) : readBytes,
    };
  });
  return tensorFile(source, metadata, stored, source.close);
}
