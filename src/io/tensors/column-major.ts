/** Fills `target` with stored bytes from the byte offset on. */
export type ReadBytes = (target: Uint8Array, offset: number) => Promise<void>;

/** The most bytes read at once while picking elements out of a column-major tensor. */
const blockBytes = 1 << 20;

/** A gap of at most this many bytes between wanted elements is read over, not skipped. */
const gapBytes = 1 << 12;

/**
 * The position in column-major order of the element that row-major order has at `position`, when the
 * shape is given reversed; the other way round when the shape is given as it is.
 */
function transposedPosition(shape: readonly number[], position: number): number {
  let rest = position;
  let transposed = 0;
  for (const dimension of shape) {
    const index = rest % dimension;
    transposed = transposed * dimension + index;
    rest = (rest - index) / dimension;
  }
  return transposed;
}

/**
 * Rearranges all bytes of a column-major (Fortran-order) tensor of `size`-byte elements into
 * row-major order.
 */
export function toRowMajor(
  columnMajor: Uint8Array,
  shape: readonly number[],
  size: number,
  target: Uint8Array,
): void {
  for (let from = 0, position = 0; from < columnMajor.length; from += size, position++) {
    const to = transposedPosition(shape, position) * size;
    for (let byte = 0; byte < size; byte++) target[to + byte] = columnMajor[from + byte];
  }
}

/**
 * Fills `target` with the row-major range of elements that begins at `start`, out of a tensor stored
 * in column-major order. The elements of such a range lie scattered over the file: they are read in
 * the order in which they are stored, in blocks of at most 1 MiB, with 8 bytes of bookkeeping for
 * each. `read` is asked for increasing offsets only.
 */
export async function readRowMajorRange(
  read: ReadBytes,
  shape: readonly number[],
  size: number,
  start: number,
  target: Uint8Array,
): Promise<void> {
  const count = target.length / size;
  const reversed = [...shape].reverse();
  // Float64Array holds positions beyond 2^32 exactly and sorts by value.
  const stored = new Float64Array(count);
  for (let index = 0; index < count; index++)
    stored[index] = transposedPosition(reversed, start + index);
  stored.sort();
  let begin = 0;
  while (begin < count) {
    const first = stored[begin];
    let end = begin + 1;
    while (
      end < count &&
      (stored[end] - stored[end - 1]) * size <= gapBytes &&
      (stored[end] - first + 1) * size <= blockBytes
    )
      end++;
    const block = new Uint8Array((stored[end - 1] - first + 1) * size);
    await read(block, first * size);
    for (let index = begin; index < end; index++) {
      const from = (stored[index] - first) * size;
      const to = (transposedPosition(shape, stored[index]) - start) * size;
      for (let byte = 0; byte < size; byte++) target[to + byte] = block[from + byte];
    }
    begin = end;
  }
}
