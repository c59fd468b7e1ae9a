import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  type FormatName,
  type TensorData,
} from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import type { ByteSource, TensorEntry, TensorFile } from './tensor-file.js';
import { type ReadBytes, readRowMajorRange, toRowMajor } from './column-major.js';
import type { DtypeFacts, Reading } from './dtype.js';
import {
  allocate,
  bytesOf,
  elementBytes,
  elementsOver,
  swapBytes,
  readingUnpacked,
} from './element-storage.js';
import { int32Of, truthsOf, wholeBytes } from './whole-numbers.js';
import { nearestName } from '../../words/index.js';
import { listed, printable, quoted, shortened, tensorIn } from './messages.js';

/** A tensor as its container stores it. */
export interface HeldTensor {
  readonly entry: TensorEntry;
  readonly reading: Reading;
  readonly dtype: DtypeFacts;
  readonly bigEndian: boolean;
  /** Stored in column-major (Fortran) order; the shape is the logical one all the same. */
  readonly columnMajor: boolean;
  /** Fills the target with stored bytes; offsets count from the tensor's first byte. */
  readonly readBytes: ReadBytes;
}

/** Number of elements hashed at a time. */
const hashedElements = 1 << 18;

/** Whether row-major and column-major order agree, since at most one dimension is above 1. */
function oneDimensional(shape: readonly number[]): boolean {
  return shape.filter((dimension) => dimension !== 1).length <= 1;
}

/** Some elements of `size` bytes each, in row-major order and little-endian. */
async function readRange(
  path: string,
  stored: HeldTensor,
  size: number,
  start: number,
  count: number,
): Promise<ArrayBuffer> {
  const { entry, readBytes } = stored;
  const purpose = tensorIn(path, entry.name);
  const buffer = allocate(count * size, purpose);
  const bytes = new Uint8Array(buffer);
  if (count === 0) return buffer;
  if (!stored.columnMajor || oneDimensional(entry.shape)) {
    await readBytes(bytes, start * size);
  } else if (count === entry.elements) {
    const columnMajor = new Uint8Array(allocate(count * size, purpose));
    await readBytes(columnMajor, 0);
    toRowMajor(columnMajor, entry.shape, size, bytes);
  } else {
    await readRowMajorRange(readBytes, entry.shape, size, start, bytes);
  }
  if (stored.bigEndian) swapBytes(bytes, size);
  return buffer;
}

/** A tensor of bytes that hold two elements each, as one with that many elements. */
function unpacked(path: string, stored: HeldTensor): HeldTensor {
  const { entry, reading, readBytes, columnMajor } = stored;
  if (reading.format === null || reading.isPacked !== true) return stored;
  const columns = entry.shape.at(-1);
  if (columns === undefined || (columnMajor && !oneDimensional(entry.shape)))
    throw new RequestError(
      `${tensorIn(path, entry.name)}: cannot be read as two elements in a byte, for it is ${columns === undefined ? 'one byte without a row' : 'stored in column-major order'}; save it as rows`,
    );
  return {
    ...stored,
    entry: {
      ...entry,
      shape: [...entry.shape.slice(0, -1), 2 * columns],
      elements: 2 * entry.elements,
    },
    columnMajor: false,
    readBytes: readingUnpacked(readBytes),
  };
}

/** The wider format that stores a tensor's numbers; undefined if they are stored in their own. */
function storedAs({ reading }: HeldTensor): FormatName | undefined {
  return reading.format === null ? undefined : reading.storedAs;
}

function entryOf(tensor: HeldTensor): TensorEntry {
  const wider = storedAs(tensor);
  return wider === undefined ? tensor.entry : { ...tensor.entry, storedAs: wider };
}

/** The source of widened elements, and the format to narrow them to. */
interface Narrowing {
  readonly path: string;
  readonly stored: FormatName;
  readonly format: FormatName;
  /** The row-major position of the first. */
  readonly start: number;
}

/** The indices of an element along each axis. */
function placeIn(shape: readonly number[], element: number): readonly number[] {
  let rest = element;
  return shape
    .toReversed()
    .map((size) => {
      const index = rest % size;
      rest = Math.floor(rest / size);
      return index;
    })
    .reverse();
}

/**
 * Elements in the format that they were widened from.
 * @throws RequestError for one that the format does not have
 */
function narrowed(
  { path, stored, format, start }: Narrowing,
  { name, shape }: TensorEntry,
  data: TensorData,
): TensorData {
  const values = decodeToFloat64(data, formats[stored]);
  const narrow = encodeFromFloat64(formats[format], values);
  const back = decodeToFloat64(narrow, formats[format]);
  const wrong = values.findIndex((x, i) => !Object.is(x, back[i]));
  if (wrong < 0) return narrow;
  throw new RequestError(
    `${tensorIn(path, name)}: is ${values[wrong]} at [${placeIn(shape, start + wrong).join(', ')}], which ${format} does not hold; leave out --format ${shortened(name)}=${format}`,
  );
}

/**
 * The TensorFile over the tensors that a container stores.
 * @param close releases the container; called once
 */
export function tensorFile(
  { path, platform }: Pick<ByteSource, 'path' | 'platform'>,
  metadata: ReadonlyMap<string, string>,
  held: readonly HeldTensor[],
  close: () => Promise<void>,
): TensorFile {
  const tensors = held.map((tensor) => unpacked(path, tensor));
  const stored = new Map(tensors.map((tensor) => [tensor.entry.name, tensor]));
  let open = true;

  const tensorNamed = (name: string): HeldTensor => {
    if (!open) throw new RequestError(`${printable(path)}: is closed; open it again to read`);
    const tensor = stored.get(name);
    if (tensor === undefined) {
      const nearest = nearestName(name, stored.keys());
      throw new RequestError(
        `${printable(path)}: has no tensor ${quoted(name)}; ` +
          (nearest === null ? '' : `did you mean ${quoted(nearest)}? `) +
          (stored.size === 0 ? 'it holds none' : `it holds ${listed(stored.keys())}`),
      );
    }
    return tensor;
  };
  const readable = (name: string): readonly [HeldTensor, FormatName] => {
    const tensor = tensorNamed(name);
    if (tensor.reading.format === null) throw new RequestError(tensor.reading.refusal);
    return [tensor, tensor.reading.format];
  };
  const readWhole = async (name: string) => {
    const tensor = tensorNamed(name);
    const { whole, holds } = tensor.dtype;
    const { elements, shape } = tensor.entry;
    const where = tensorIn(path, name);
    const size = wholeBytes(whole, holds, where);
    return { shape, whole, where, buffer: await readRange(path, tensor, size, 0, elements) };
  };
  const numbers = async (name: string, start: number, count: number): Promise<TensorData> => {
    const [tensor, format] = readable(name);
    const stored = storedAs(tensor) ?? format;
    const data = elementsOver(
      stored,
      await readRange(path, tensor, elementBytes(stored), start, count),
    );
    return stored === format ? data : narrowed({ path, stored, format, start }, tensor.entry, data);
  };

  const readElements = async (name: string, start: number, count: number): Promise<TensorData> => {
    const [tensor] = readable(name);
    const { elements } = tensor.entry;
    const whole = Number.isSafeInteger(start) && Number.isSafeInteger(count);
    if (!whole || start < 0 || count < 0 || start + count > elements)
      throw new RequestError(
        `${tensorIn(path, name)}: has no ${count} elements from position ${start} on; ` +
          `stay within its ${elements}`,
      );
    return numbers(name, start, count);
  };

  return {
    path,
    beside: platform.files,
    metadata: Object.freeze(Object.fromEntries(metadata)),
    entries: new Map(tensors.map((tensor) => [tensor.entry.name, entryOf(tensor)])),
    readElements,
    read: async (name) => {
      const [tensor, format] = readable(name);
      const { shape, elements } = tensor.entry;
      return { format, shape, data: await numbers(name, 0, elements) };
    },
    readIntegers: async (name) => {
      const { shape, whole, where, buffer } = await readWhole(name);
      return { shape, data: int32Of(buffer, whole, where) };
    },
    readTruths: async (name) => {
      const { shape, whole, where, buffer } = await readWhole(name);
      return { shape, data: truthsOf(buffer, whole, where) };
    },
    readBytes: async (name) => {
      const tensor = tensorNamed(name);
      const { elements, dtype } = tensor.entry;
      const { bits, mend } = tensor.dtype;
      if (bits === null || bits % 8 !== 0)
        throw new RequestError(
          `${tensorIn(path, name)}: elements of dtype ${quoted(dtype)} are no whole bytes; ${mend}`,
        );
      return new Uint8Array(await readRange(path, tensor, bits / 8, 0, elements));
    },
    sha256: async (name) => {
      const { elements } = readable(name)[0].entry;
      const hash = platform.codecs.createSha256();
      for (let start = 0; start < elements; start += hashedElements) {
        const count = Math.min(hashedElements, elements - start);
        hash.update(bytesOf(await readElements(name, start, count)));
      }
      return hash.digest();
    },
    close: async () => {
      if (!open) return;
      open = false;
      await close();
    },
  };
}
