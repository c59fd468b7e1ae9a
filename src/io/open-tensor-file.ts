import { stat } from 'node:fs/promises';
import { RequestError } from '../request-error.js';
import { type ByteSource, openByteSource } from './byte-source.js';
import type { DeclaredFormats } from './dtype.js';
import { fileError, printable } from './messages.js';
import { npyMagic } from './npy/header.js';
import { openNpy } from './npy/npy.js';
import { openNpz } from './npz/npz.js';
import { openSafetensors } from './safetensors/safetensors.js';
import { openTensorFolder } from './tensor-folder.js';
import type { TensorFile } from './tensor-file.js';

/** How a tensor file is to be read. */
export interface OpenOptions {
  /**
   * Formats of tensors whose dtype does not tell, by tensor name: e4m3 or e5m2 stored as opaque
   * bytes or 8-bit integers, e2m1 there as one element a byte, or e2m1x2 as two, bf16 or fp16 stored as 16-bit ones, tf32 stored as fp32.
   */
  readonly formats?: DeclaredFormats;
}

type Opener = (source: ByteSource, declared: DeclaredFormats) => Promise<TensorFile>;

const zipMagic = (third: number, fourth: number): Uint8Array =>
  Uint8Array.of(0x50, 0x4b, third, fourth);

/** How the files we read begin; a zip archive without members begins with its directory's end. */
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

/** How the files begin that users mistake for ours, what they are, and what to do. */
const foreign: readonly (readonly [magic: Uint8Array, what: string, mend: string])[] = [
  [Uint8Array.of(0x80, 0x02), ...pickle],
  [Uint8Array.of(0x80, 0x03), ...pickle],
  [Uint8Array.of(0x80, 0x04), ...pickle],
  [Uint8Array.of(0x80, 0x05), ...pickle],
  [Buffer.from('\x89HDF', 'latin1'), 'an HDF5 file', convert],
  [Buffer.from('GGUF'), 'a GGUF file', convert],
  [Uint8Array.of(0x1f, 0x8b), 'compressed by gzip', 'decompress it first'],
  [Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd), 'compressed by zstd', 'decompress it first'],
  [Buffer.from('version https://git-lfs'), 'a Git LFS pointer', 'fetch the file with git lfs pull'],
];

/** What to try on content that has no mark, by the ending of the path. */
const openersByEnding: readonly (readonly [ending: string, opener: Opener])[] = [
  ['.safetensors', openSafetensors],
  ['.npy', openNpy],
  ['.npz', openNpz],
];

/** Bytes that tell what a file is: the longest mark, and safetensors' length and "{". */
const probeBytes = 32;

function startsWith(content: Uint8Array, magic: Uint8Array): boolean {
  return Buffer.compare(content.subarray(0, magic.length), magic) === 0;
}

/** Whether the file begins as safetensors do: a possible header length, then a "{". */
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
 * Opens a safetensors, npy or npz file, told apart by content and not by name, or a folder of npy
 * files. All headers are read and checked; elements are not read yet. Only regular files are opened.
 * @throws RequestError when the path cannot be read, the content is none of these or breaks its
 * format, or a declared format is impossible
 */
export async function openTensorFile(path: string, options: OpenOptions = {}): Promise<TensorFile> {
  const declared = options.formats ?? {};
  const kind = await stat(path).catch((error: unknown) => {
    throw fileError(error, path, 'open');
  });
  if (kind.isDirectory()) return openTensorFolder(path, declared);
  const source = await openByteSource(path);
  try {
    return await (
      await openerOf(source)
    )(source, declared);
  } catch (error) {
    await source.close();
    throw error;
  }
}
