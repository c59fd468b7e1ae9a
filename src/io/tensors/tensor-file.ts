import type { FormatName, Tensor, TensorData } from '../../formats/index.js';
import type { BooleanTensor, IntegerTensor } from '../../problem/index.js';
import type { OpenOptions } from './dtype.js';

/** One tensor of a file, known from the file's header; its elements are not read yet. */
export interface TensorEntry {
  readonly name: string;
  /** The dtype as the file spells it: "BF16" in safetensors, "<f2" in npy. */
  readonly dtype: string;
  /** The format its elements are read in; null for a dtype that is listed but cannot be read. */
  readonly format: FormatName | null;
  /** The wider format that its elements are stored as, where a narrower one is declared; absent otherwise. */
  readonly storedAs?: FormatName;
  readonly shape: readonly number[];
  /** The product of the shape; 1 for a scalar. */
  readonly elements: number;
  /** Bytes that the elements take, uncompressed. */
  readonly byteLength: number;
}

/** A file or folder of tensors, open for reading. */
export interface TensorFile {
  readonly path: string;
  /** The files that can be named beside it. */
  readonly beside: TensorFiles;
  /** The notes of the file about itself, as strings; empty if the container has no place for them. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The tensors in the order of the file. */
  readonly entries: ReadonlyMap<string, TensorEntry>;
  /**
   * All elements of a tensor, in row-major order and in a typed array of their own.
   * @throws RequestError when there is no such tensor (with the names there are), its dtype is no
   * number format, the file is damaged, or it does not fit in memory
   */
  readonly read: (name: string) => Promise<Tensor>;
  /**
   * The `count` elements from row-major position `start` on, reading no more of the file than they
   * need; ascending ranges of a compressed member continue where the last one ended.
   * @throws RequestError as `read` does, and when the range leaves the tensor
   */
  readonly readElements: (name: string, start: number, count: number) => Promise<TensorData>;
  /**
   * All elements of a tensor of integers of any width.
   * @throws RequestError as `read` does, for a tensor of anything else, and for a number beyond 32 bits
   */
  readonly readIntegers: (name: string) => Promise<IntegerTensor>;
  /**
   * All elements of a tensor of booleans, or of bytes that are 0 or 1.
   * @throws RequestError as `read` does, for a tensor of anything else, and for any other byte
   */
  readonly readTruths: (name: string) => Promise<BooleanTensor>;
  /**
   * The bytes of a tensor of any dtype as they are, in row-major order and little-endian, in an array of their own.
   * @throws RequestError as `read` does, but for any dtype whose elements are whole bytes
   */
  readonly readBytes: (name: string) => Promise<Uint8Array>;
  /**
   * SHA-256, in lower-case hexadecimal, of a tensor's elements in row-major order and little-endian:
   * the same whichever container holds them. Streams; needs little memory.
   * @throws RequestError as `read` does
   */
  readonly sha256: (name: string) => Promise<string>;
  /** Releases the file. Reading afterwards is a RequestError; closing again does nothing. */
  readonly close: () => Promise<void>;
}

/** SHA-256 of bytes that come piece by piece. */
interface Sha256 {
  readonly update: (bytes: Uint8Array) => unknown;
  /** In lower-case hexadecimal; called once, at the end. */
  readonly digest: () => string;
}

/** Platform services for reading tensors beside the bytes themselves, of Node.js or a browser. */
export interface Codecs {
  /**
   * Inflates a raw deflate stream (RFC 1951), piece by piece; abandoning the generator frees its resources.
   * It passes on errors of the compressed pieces, and throws an Error for an invalid stream.
   */
  readonly inflateRaw: (compressed: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array>;
  /** CRC-32 as in zip archives, of the earlier bytes, 0 for none, and more bytes. */
  readonly crc32: (bytes: Uint8Array, before: number) => number;
  readonly createSha256: () => Sha256;
}

/** The files that a path can lead to: those of the machine, or those given to a page. */
export interface TensorFiles {
  /** Whether a file exists under a path. */
  readonly has: (path: string) => boolean;
  /** @throws RequestError when it cannot be read or is no tensor file */
  readonly open: (path: string, options: OpenOptions) => Promise<TensorFile>;
}

/** The source of bytes: files that can be named beside one another, and the services for reading them. */
export interface Platform {
  readonly codecs: Codecs;
  readonly files: TensorFiles;
}

/** A file of known length, readable at any position. */
export interface ByteSource {
  readonly path: string;
  /** Bytes in the file when it was opened. */
  readonly size: number;
  readonly platform: Platform;
  /**
   * Fills all of `target` with the bytes from `position` on.
   * @throws RequestError when the range does not lie inside the file, or reading fails
   */
  readonly read: (target: Uint8Array, position: number) => Promise<void>;
  readonly close: () => Promise<void>;
}
