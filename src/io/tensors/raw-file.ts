import { RequestError } from '../../request-error.js';
import { checkDeclarations, type OpenOptions, readingOf } from './dtype.js';
import { quoted, tensorIn } from './messages.js';
import { elementCount } from './named-tensors.js';
import { type HeldTensor, tensorFile } from './read-tensors.js';
import { safetensorsDtypes } from './safetensors/header.js';
import type { ByteSource, TensorFile } from './tensor-file.js';

/** A tensor as its bytes, of any dtype of safetensors. */
export interface RawTensor {
  readonly name: string;
  /** The dtype as safetensors spells it: `BF16`, `I64`. */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Its elements, little-endian and in row-major order. */
  readonly bytes: Uint8Array;
}

/** @throws RequestError for an unknown dtype, and for another number of bytes than the shape has */
function heldTensor(
  path: string,
  tensor: RawTensor,
  metadata: ReadonlyMap<string, string>,
  declared: OpenOptions,
): HeldTensor {
  const { name, dtype, shape, bytes } = tensor;
  const facts = safetensorsDtypes.get(dtype);
  const elements = elementCount(shape);
  const where = tensorIn(path, name);
  if (facts === undefined)
    throw new RequestError(`${where}: has the unknown dtype ${quoted(dtype)}; save it as another`);
  if (elements === null || facts.bits === null || (elements * facts.bits) / 8 !== bytes.length)
    throw new RequestError(
      `${where}: has ${bytes.length} bytes, which are not [${shape.join(', ')}] of ${dtype}; make them agree`,
    );
  const reading = readingOf({ path, name, dtype }, facts, declared.formats ?? {}, metadata);
  return {
    entry: { name, dtype, format: reading.format, shape, elements, byteLength: bytes.length },
    reading,
    dtype: facts,
    bigEndian: false,
    columnMajor: false,
    readBytes: async (target, offset) => target.set(bytes.subarray(offset, offset + target.length)),
  };
}

/**
 * Tensors in memory as a file of them.
 *
 * @param source its path begins messages
 * @param metadata the notes of the file about itself
 * @param options as for opening a file: formats that dtypes do not tell
 * @throws RequestError for a tensor that no file has, and for formats that do not fit
 */
export function rawTensorFile(
  source: Pick<ByteSource, 'path' | 'platform'>,
  tensors: readonly RawTensor[],
  metadata: ReadonlyMap<string, string>,
  options: OpenOptions,
): TensorFile {
  const { path } = source;
  checkDeclarations(path, options, new Set(tensors.map(({ name }) => name)));
  const held = tensors.map((tensor) => heldTensor(path, tensor, metadata, options));
  return tensorFile(source, metadata, held, async () => undefined);
}
