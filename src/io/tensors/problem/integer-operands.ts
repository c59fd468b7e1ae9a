import { encodeFromFloat64, formats, type Tensor } from '../../../formats/index.js';
import { scaledTensors, type Problem } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { tensorIn } from '../messages.js';
import type { TensorEntry, TensorFile } from '../tensor-file.js';

/** The format that holds every 8-bit integer. */
const holder = formats.fp16;
/** dtypes of 8-bit signed integers: safetensors' and npy's. */
const signedBytes = /^(?:I8|[|<>=]?i1)$/;

/** Whether a tensor's elements are 8-bit signed integers, and not patterns of a declared format. */
function holdsIntegers(entry: TensorEntry | undefined): entry is TensorEntry {
  return entry !== undefined && entry.format === null && signedBytes.test(entry.dtype);
}

/** Integers, a byte each, as numbers of fp16. */
function asNumbers(bytes: Uint8Array): Tensor['data'] {
  const integers = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  return encodeFromFloat64(holder, Float64Array.from(integers));
}

/** A file whose 8-bit signed integers are read as the numbers that they are, in fp16, which has all of them. */
export function withIntegerOperands(file: TensorFile): TensorFile {
  const entries = new Map(
    [...file.entries].map(([name, entry]): [string, TensorEntry] => [
      name,
      holdsIntegers(entry)
        ? { ...entry, format: holder.name, byteLength: 2 * entry.byteLength }
        : entry,
    ]),
  );
  const isOne = (name: string) => holdsIntegers(file.entries.get(name));
  const known = new Map<string, Promise<Uint8Array>>();
  const bytesOf = (name: string): Promise<Uint8Array> => {
    const bytes = known.get(name) ?? file.readBytes(name);
    known.set(name, bytes);
    return bytes;
  };
  return {
    ...file,
    entries,
    read: async (name) =>
      isOne(name)
        ? {
            format: holder.name,
            shape: entries.get(name)!.shape,
            data: asNumbers(await bytesOf(name)),
          }
        : file.read(name),
    readElements: async (name, start, count) =>
      isOne(name)
        ? asNumbers((await bytesOf(name)).subarray(start, start + count))
        : file.readElements(name, start, count),
  };
}

/**
 * The problem whose q, k and v say which of them are integers.
 * @param sources the tensors of the file that q, k and v are read from
 * @throws RequestError for integers without factors
 */
export function markIntegers(
  file: TensorFile,
  problem: Problem,
  sources: Readonly<Record<'q' | 'k' | 'v', string>>,
): Problem {
  const marked = scaledTensors.flatMap((name): [string, Tensor][] => {
    if (!holdsIntegers(file.entries.get(sources[name]))) return [];
    if (problem[name].scales === undefined)
      throw new RequestError(
        `${tensorIn(file.path, sources[name])}: holds 8-bit integers and no factors; add ${name}_descale: a number, or one a head, block of rows (${name}_descale_block) or token`,
      );
    return [[name, { ...problem[name], integers: 'int8' }]];
  });
  return marked.length === 0 ? problem : { ...problem, ...Object.fromEntries(marked) };
}
