import { RequestError } from '../../request-error.js';
import type { OpenOptions } from './dtype.js';
import { printable } from './messages.js';
import { npyMagic } from './npy/header.js';
import { openNpy } from './npy/npy.js';
import { openNpz } from './npz/npz.js';
import { openSafetensors } from './safetensors/safetensors.js';
import type { ByteSource, TensorFile } from './tensor-file.js';

type Opener = (source: ByteSource, options: OpenOptions) => Promise<TensorFile>;

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

const zipMagic = (third: number, fourth: number): Uint8Array =>
  Uint8Array.of(0x50, 0x4b, third, fourth);

/** Magic bytes of the supported files; a zip archive without members begins with its directory's end. */
const openers: readonly (readonly [magic: Uint8Array, opener: Opener])[] = [
  [npyMagic, openNpy],
  [zipMagic(3, 4), openNpz],
  [zipMagic(5, 6), openNpz],
];

const pickle = [
  'a pickle, which is never read, as it may run code',
  'save as safetensors',
] as const;
const convert = 'convert it to safetensors or npz';

/** Magic bytes of files that users mistake for supported ones, with a description and advice. */
const foreign: readonly (readonly [magic: Uint8Array, what: string, mend: string])[] = [
  [Uint8Array.of(0x80, 0x02), ...pickle],
  [Uint8Array.of(0x80, 0x03), ...pickle],
  [Uint8Array.of(0x80, 0x04), ...pickle],
  [Uint8Array.of(0x80, 0x05), ...pickle],
  [Uint8Array.of(0x89, 0x48, 0x44, 0x46), 'an HDF5 file', convert],
  [ascii('GGUF'), 'a GGUF file', convert],
  [Uint8Array.of(0x1f, 0x8b), 'compressed by gzip', 'decompress it first'],
  [Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd), 'compressed by zstd', 'decompress it first'],
  [ascii('version https://git-lfs'), 'a Git LFS pointer', 'fetch the file with git lfs pull'],
];

/** Openers to try on content without magic bytes, by the ending of the path. */
const openersByEnding: readonly (readonly [ending: string, opener: Opener])[] = [
  ['.safetensors', openSafetensors],
  ['.npy', openNpy],
  ['.npz', openNpz],
];

/** Number of bytes that identify a file: the longest magic, and safetensors' length and "{". */
const probeBytes = 32;

function startsWith(content: Uint8Array, magic: Uint8Array): boolean {
  return magic.every((byte, i) => byte === content[i]);
}

/** Whether the file begins like safetensors: a possible header length, then a "{". */
function looksLikeSafetensors(beginning: Uint8Array, size: number): boolean {
  if (beginning.length < 9 || beginning[8] !== 0x7b) return false;
  const length = new DataView(beginning.buffer, beginning.byteOffset).getBigUint64(0, true);
  return length <= BigInt(size - 8);
}

async function openerOf(source: ByteSource): Promise<Opener> {
  const { path, size } = source;
  const where = printable(path);
  if (size === 0) throw new RequestError(`${where}: is empty; copy or save it again`);
  const beginning = new Uint8Array(Math.min(probeBytes, size));
  await source.read(beginning, 0);
  const known = openers.find(([magic]) => startsWith(beginning, magic));
  if (known !== undefined) return known[1];
  if (looksLikeSafetensors(beginning, size)) return openSafetensors;
  const mistaken = foreign.find(([magic]) => startsWith(beginning, magic));
  if (mistaken !== undefined) throw new RequestError(`${where}: is ${mistaken[1]}; ${mistaken[2]}`);
  const ending = openersByEnding.find(([suffix]) => path.toLowerCase().endsWith(suffix));
  if (ending !== undefined) return ending[1];
  throw new RequestError(
    `${where}: is no safetensors, npy or npz file; save the tensors as one of these`,
  );
}

/**
 * Opens the safetensors, npy or npz file of a source, identified by content and not by name. All headers
 * are read and checked; elements are not read yet.
 * @param source closed with the returned TensorFile, or when opening fails
 * @throws RequestError when the content is none of these or breaks its format, or a declared format is
 * impossible
 */
export async function openTensorSource(
  source: ByteSource,
  options: OpenOptions,
): Promise<TensorFile> {
  try {
    return await (
      await openerOf(source)
    )(source, options);
  } catch (error) {
    await source.close();
    throw error;
  }
}
