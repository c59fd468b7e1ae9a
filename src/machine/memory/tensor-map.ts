import { RequestError } from '../../request-error.js';
import {
  type MemoryViolation,
  requireLegal,
  type SharedMemory,
  swizzleAddress,
  type SwizzleMode,
  swizzles,
} from './shared-memory.js';

/** What {@link createTensorMap} needs; dimension 0 is the innermost, whose elements are adjacent. */
export interface TensorMapOptions {
  /** What errors call the tensor. */
  readonly name: string;
  /** The tensor in global memory; its first byte is the tensor's first, aligned to 16 bytes. */
  readonly bytes: Uint8Array;
  readonly elementBytes: 1 | 2 | 4 | 8;
  /** Elements of each dimension, one to five dimensions. */
  readonly dims: readonly number[];
  /** Bytes from one index to the next, of dimension 1 and beyond. */
  readonly strides: readonly number[];
  /** Elements of a box in each dimension. */
  readonly box: readonly number[];
  /**
   * Of dimension 1 and beyond, every so many elements of a box are copied, from its first on; default 1. (Of
   * dimension 0 all are, whatever is said.)
   */
  readonly elementStrides?: readonly number[] | undefined;
  readonly swizzle: SwizzleMode;
}

/**
 * A tensor map of TMA: a tensor in global memory and the boxes that are copied from it and to it. What
 * lies outside of the tensor is read as zeros and is not written.
 */
export interface TensorMap extends TensorMapOptions {
  /** The tensor as words, for copies. */
  readonly words: Uint32Array;
  /** Bytes of a box's row, along dimension 0. */
  readonly rowBytes: number;
  /** Elements that are copied of each dimension of a box. */
  readonly counts: readonly number[];
  /** Rows that are copied of a box. */
  readonly boxRows: number;
  /**
   * Bytes of a box: what a copy from global memory adds to a barrier's complete_tx, also if a part of
   * the box lies outside of the tensor (CUTLASS' pipelines expect whole boxes at the tensor's edges).
   */
  readonly boxBytes: number;
}

const most = { dimensions: 5, box: 256, extent: 2 ** 32, stride: 2 ** 40, elementStride: 8 };

/**
 * A tensor map. Source of the rules: CUDA driver API, cuTensorMapEncodeTiled, without interleaving. Throws a RequestError for what they forbid (memory or strides that are no
 * multiples of 16 bytes, boxes of more than 256 elements in a dimension, rows of a box that are no
 * multiple of 16 bytes or longer than the swizzling's span), for rows shorter than the span, whose
 * place in shared memory no document tells, and for a tensor that is larger than its memory.
 */
export function createTensorMap(options: TensorMapOptions): TensorMap {
  const { name, bytes, elementBytes, dims, strides, box, swizzle } = options;
  const elementStrides = options.elementStrides ?? dims.map(() => 1);
  const require = (holds: boolean, problem: string): void => {
    if (!holds) throw new RequestError(`tensor map of ${name}: ${problem}`);
  };
  require(dims.length >= 1 &&
    dims.length <= most.dimensions, `${dims.length} dimensions; pass 1 to ${most.dimensions}`);
  require(strides.length === dims.length - 1 &&
    box.length ===
      dims.length, `${dims.length} dimensions with ${strides.length} strides and ${box.length} sizes of a box; pass ${dims.length - 1} and ${dims.length}`);
  require(bytes.byteOffset % 16 ===
    0, `memory at byte ${bytes.byteOffset} of its buffer; copy it to a multiple of 16`);
  dims.forEach((size, i) =>
    require(isBetween(size, 1, most.extent), `dimension ${i} has ${size} elements; pass 1 to 2^32`),
  );
  strides.forEach((stride, i) =>
    require(stride % 16 === 0 &&
      isBetween(
        stride,
        0,
        most.stride - 1,
      ), `dimension ${i + 1} has a stride of ${stride} bytes; pass a multiple of 16 below 2^40`),
  );
  box.forEach((size, i) =>
    require(isBetween(
      size,
      1,
      most.box,
    ), `the box has ${size} elements in dimension ${i}; pass 1 to ${most.box}`),
  );
  require(elementStrides.length ===
    dims.length, `${elementStrides.length} strides of elements; pass ${dims.length}`);
  elementStrides.forEach((stride, i) =>
    require(isBetween(
      stride,
      1,
      most.elementStride,
    ), `a stride of ${stride} elements in dimension ${i}; pass 1 to ${most.elementStride}`),
  );
  const rowBytes = box[0] * elementBytes;
  require(rowBytes % 16 === 0, `rows of a box have ${rowBytes} bytes; pass a multiple of 16`);
  const { spanBytes } = swizzles[swizzle];
  require(swizzle === 'none' ||
    rowBytes <=
      spanBytes, `rows of a box have ${rowBytes} bytes, more than the ${spanBytes} that ${swizzle} swizzling permutes; split the box`);
  require(swizzle === 'none' ||
    rowBytes ===
      spanBytes, `rows of a box have ${rowBytes} bytes, fewer than the ${spanBytes} that ${swizzle} swizzling permutes; take a narrower swizzling`);
  const tensorBytes = strides.reduce(
    (sum, stride, i) => sum + (dims[i + 1] - 1) * stride,
    dims[0] * elementBytes,
  );
  require(tensorBytes <=
    bytes.byteLength, `its last element ends at byte ${tensorBytes} of ${bytes.byteLength}; pass the whole tensor`);
  const counts = box.map((size, i) => (i === 0 ? size : Math.ceil(size / elementStrides[i])));
  const boxRows = counts.slice(1).reduce((product, size) => product * size, 1);
  return {
    ...options,
    words: new Uint32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 4)),
    rowBytes,
    counts,
    boxRows,
    boxBytes: rowBytes * boxRows,
  };
}

function isBetween(value: number, first: number, last: number): boolean {
  return Number.isInteger(value) && value >= first && value <= last;
}

/** Alignment of a box in shared memory. Source: PTX ISA 9.2, `cp.async.bulk.tensor`. */
export const boxAlignment = 128;

const chunkBytes = 16;

/** One row of a box, along dimension 0. */
export interface BoxRow {
  /** Its number in the box: it lies `index` · rowBytes behind the box's start, before swizzling. */
  readonly index: number;
  /** Where its first byte is, or would be, in the tensor's memory. */
  readonly start: number;
  /** The bytes of the row, from its first on, that lie in the tensor: none if they are equal. */
  readonly firstByte: number;
  readonly endByte: number;
}

/**
 * The rows of the box at these coordinates (of its first element, dimension 0 first, possibly outside of
 * the tensor), in the order in which they lie in shared memory. One object serves all rows.
 */
export function forEachBoxRow(
  map: TensorMap,
  coordinates: readonly number[],
  visit: (row: BoxRow) => void,
): void {
  const { dims, strides, counts, elementStrides, elementBytes, rowBytes } = map;
  const firstByte = clamp(-coordinates[0] * elementBytes, 0, rowBytes);
  const endByte = clamp((dims[0] - coordinates[0]) * elementBytes, firstByte, rowBytes);
  const row = { index: 0, start: 0, firstByte: 0, endByte: 0 };
  for (let index = 0; index < map.boxRows; index++) {
    let [rest, isInside] = [index, true];
    let start = coordinates[0] * elementBytes;
    for (let i = 1; i < dims.length; i++) {
      const coordinate = coordinates[i] + (rest % counts[i]) * (elementStrides?.[i] ?? 1);
      rest = Math.floor(rest / counts[i]);
      isInside &&= coordinate >= 0 && coordinate < dims[i];
      start += coordinate * strides[i - 1];
    }
    row.index = index;
    row.start = start;
    row.firstByte = isInside ? firstByte : 0;
    row.endByte = isInside ? endByte : 0;
    visit(row);
  }
}

/**
 * What is wrong with a copy between the box at these coordinates and this byte of shared memory, or null:
 * a wrong number of coordinates, an address that is no multiple of 128, a box beyond the end of what was
 * asked for.
 */
export function checkBox(
  map: TensorMap,
  coordinates: readonly number[],
  shared: SharedMemory,
  address: number,
): MemoryViolation | null {
  if (coordinates.length !== map.dims.length || !coordinates.every(Number.isInteger))
    return {
      kind: 'instruction-shape',
      message: `coordinates ${coordinates.join(', ')} of ${map.name}; ${map.dims.length} integers are due`,
    };
  if (!(address % boxAlignment === 0 && address >= 0))
    return {
      kind: 'misaligned',
      message: `a box of ${map.name} at byte ${address} of shared memory; a multiple of ${boxAlignment} is due`,
    };
  const end = address + map.boxBytes;
  if (end > shared.launchedBytes)
    return {
      kind: 'shared-overflow',
      message: `a box of ${map.name} at byte ${address} ends at byte ${end} of shared memory, which has ${shared.launchedBytes}`,
    };
  return null;
}

/** The words of shared memory that a box touches: a contiguous range, swizzled or not. */
export function touchedByBox(
  map: TensorMap,
  address: number,
): { readonly firstWord: number; readonly words: number } {
  return { firstWord: address / 4, words: map.boxBytes / 4 };
}

/**
 * cp.async.bulk.tensor from global to shared memory, at once: the box at these coordinates to byte
 * `address`, swizzled by the absolute address, zeros where it lies outside of the tensor. Returns the
 * bytes that the copy reports to its barrier, those of the whole box. Throws a RequestError for what
 * {@link checkBox} finds.
 */
export function loadBox(
  map: TensorMap,
  coordinates: readonly number[],
  shared: SharedMemory,
  address: number,
): number {
  requireLegal(checkBox(map, coordinates, shared, address));
  const { rowBytes, swizzle } = map;
  forEachBoxRow(map, coordinates, ({ index, start, firstByte, endByte }) => {
    const rowAddress = address + index * rowBytes;
    for (let byte = 0; byte < rowBytes; byte += chunkBytes) {
      const to = swizzleAddress(swizzle, rowAddress + byte);
      const isWhole = firstByte <= byte && byte + chunkBytes <= endByte;
      if (isWhole && start % 4 === 0)
        copyFourWords(map.words, (start + byte) / 4, shared.words, to / 4);
      else {
        shared.bytes.fill(0, to, to + chunkBytes);
        const first = Math.max(byte, firstByte);
        const end = Math.min(byte + chunkBytes, endByte);
        for (let i = first; i < end; i++) shared.bytes[to + i - byte] = map.bytes[start + i];
      }
    }
  });
  return map.boxBytes;
}

/**
 * cp.async.bulk.tensor from shared to global memory, at once: the reverse of {@link loadBox}; what lies
 * outside of the tensor is not written. Returns the bytes of the whole box.
 */
export function storeBox(
  map: TensorMap,
  coordinates: readonly number[],
  shared: SharedMemory,
  address: number,
): number {
  requireLegal(checkBox(map, coordinates, shared, address));
  const { rowBytes, swizzle } = map;
  forEachBoxRow(map, coordinates, ({ index, start, firstByte, endByte }) => {
    const rowAddress = address + index * rowBytes;
    for (let byte = 0; byte < rowBytes; byte += chunkBytes) {
      const from = swizzleAddress(swizzle, rowAddress + byte);
      const isWhole = firstByte <= byte && byte + chunkBytes <= endByte;
      if (isWhole && start % 4 === 0)
        copyFourWords(shared.words, from / 4, map.words, (start + byte) / 4);
      else {
        const first = Math.max(byte, firstByte);
        const end = Math.min(byte + chunkBytes, endByte);
        for (let i = first; i < end; i++) map.bytes[start + i] = shared.bytes[from + i - byte];
      }
    }
  });
  return map.boxBytes;
}

function copyFourWords(source: Uint32Array, from: number, target: Uint32Array, to: number): void {
  target[to] = source[from];
  target[to + 1] = source[from + 1];
  target[to + 2] = source[from + 2];
  target[to + 3] = source[from + 3];
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
