import {
  type BytePlace,
  type ByteStore,
  createByteStore,
  fillHalves,
  hasEqualBytes,
  moveBytes,
} from './byte-store.js';
import {
  type MemoryViolation,
  requireLegal,
  type SharedMemory,
  swizzleAddress,
} from './shared-memory.js';
import { outOfBoundsNan, type TensorMap } from './tensor-map.js';

/** Alignment of a box in shared memory. Source: PTX ISA 9.2, `cp.async.bulk.tensor`. */
export const boxAlignment = 128;

const chunkBytes = 16;

/** One row of a box, along dimension 0. */
export interface BoxRow {
  /** Index of the row in the box: it lies `index` · rowBytes behind the box's start, before swizzling. */
  readonly index: number;
  /** Position of its first byte in the tensor's memory, possibly outside of it. */
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
    if (map.namesRows) {
      const named = coordinates[1 + index];
      const isInside = named >= 0 && named < dims[1];
      row.index = index;
      row.start = coordinates[0] * elementBytes + named * strides[0];
      row.firstByte = isInside ? firstByte : 0;
      row.endByte = isInside ? endByte : 0;
      visit(row);
      continue;
    }
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
 * The error in a copy between the box at these coordinates and this byte of shared memory, or null: a
 * wrong number of coordinates, an address that is no multiple of 128, a box beyond the end of the
 * launched bytes.
 */
export function checkBox(
  map: TensorMap,
  coordinates: readonly number[],
  shared: Pick<SharedMemory, 'launchedBytes'>,
  address: number,
): MemoryViolation | null {
  const due = map.namesRows ? 1 + map.boxRows : map.dims.length;
  if (coordinates.length !== due || !coordinates.every(Number.isInteger))
    return {
      kind: 'instruction-shape',
      message: `coordinates ${coordinates.join(', ')} of ${map.name}; ${due} integers are due`,
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
 * `address`, swizzled by the absolute address, zeros or NaN where it lies outside of the tensor. Returns the
 * bytes that the copy reports to its barrier, those of the whole box. Throws a RequestError for errors that
 * {@link checkBox} finds.
 */
export function loadBox(
  map: TensorMap,
  coordinates: readonly number[],
  shared: SharedMemory,
  address: number,
): number {
  requireLegal(checkBox(map, coordinates, shared, address));
  const { place, rowBytes, swizzle } = map;
  const outside = map.fill === 'nan' ? outOfBoundsNan : 0;
  forEachBoxRow(map, coordinates, ({ index, start, firstByte, endByte }) => {
    for (let byte = 0; byte < rowBytes; byte += chunkBytes) {
      const to = swizzleAddress(swizzle, address + index * rowBytes + byte);
      const first = Math.max(byte, firstByte);
      const count = Math.min(byte + chunkBytes, endByte) - first;
      if (count < chunkBytes) fillHalves(shared.store, to, chunkBytes, outside);
      moveBytes(place.store, place.offset + start + first, shared.store, to + first - byte, count);
    }
  });
  return map.boxBytes;
}

/**
 * cp.async.bulk.tensor from shared to global memory, at once: the reverse of {@link loadBox}; elements
 * outside of the tensor are not written. Returns the bytes of the whole box.
 */
export function storeBox(
  map: TensorMap,
  coordinates: readonly number[],
  shared: SharedMemory,
  address: number,
): number {
  requireLegal(checkBox(map, coordinates, shared, address));
  scatterBox(map, coordinates, gatherBox(map, shared, address));
  return map.boxBytes;
}

/** The rows of a box in shared memory, one behind the other and without swizzling: the bytes that a store has read. */
export function gatherBox(map: TensorMap, shared: SharedMemory, address: number): ByteStore {
  const { boxBytes, swizzle } = map;
  const rows = createByteStore(boxBytes);
  for (let first = 0; first < boxBytes; first += chunkBytes)
    moveBytes(shared.store, swizzleAddress(swizzle, address + first), rows, first, chunkBytes);
  return rows;
}

/** Calls `visit` with each run of the box's rows that lies in the tensor: its first byte there and in the rows, and its bytes. */
function forEachRun(
  map: TensorMap,
  coordinates: readonly number[],
  visit: (inTensor: number, inRows: number, count: number) => void,
): void {
  const { place, rowBytes } = map;
  forEachBoxRow(map, coordinates, ({ index, start, firstByte, endByte }) => {
    if (endByte > firstByte)
      visit(place.offset + start + firstByte, index * rowBytes + firstByte, endByte - firstByte);
  });
}

/**
 * Writes the rows that {@link gatherBox} has read to the box at these coordinates, as far as it lies in the tensor.
 *
 * @param combine for a reduction: combines bytes of the tensor, whole elements, with the corresponding bytes of the
 *   box into new ones
 */
export function scatterBox(
  map: TensorMap,
  coordinates: readonly number[],
  rows: ByteStore,
  combine?: (tensor: BytePlace, row: BytePlace, bytes: number) => void,
): void {
  const { store } = map.place;
  forEachRun(map, coordinates, (to, from, count) => {
    if (combine === undefined) moveBytes(rows, from, store, to, count);
    else combine({ store, offset: to }, { store: rows, offset: from }, count);
  });
}

/** Whether the tensor already has the rows that {@link gatherBox} has read, as far as the box lies in it. */
export function hasBox(map: TensorMap, coordinates: readonly number[], rows: ByteStore): boolean {
  let isEqual = true;
  forEachRun(map, coordinates, (at, from, count) => {
    isEqual &&= hasEqualBytes(map.place.store, at, rows, from, count);
  });
  return isEqual;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
