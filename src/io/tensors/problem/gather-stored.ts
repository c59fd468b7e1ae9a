import type { FormatName, Tensor } from '../../../formats/index.js';
import type { StoredRows } from '../../../problem/index.js';
import { allocate, bytesOf, elementBytes, elementsOver } from '../element-storage.js';
import { tensorIn } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';

/** The most bytes read at once. */
const chunkBytes = 1 << 22;

/** A gap of at most this many bytes between wanted rows is read over, not skipped. */
const gapBytes = 1 << 12;

/** The canonical rows in the order of their slots. */
function bySlot(slots: Int32Array): Uint32Array {
  const order = Uint32Array.from(slots, (_, row) => row);
  const isSorted = slots.every((slot, row) => row === 0 || slots[row - 1] <= slot);
  return isSorted ? order : order.sort((a, b) => slots[a] - slots[b]);
}

/** A stretch of the rows in the order of their slots: `first` ≤ index < `behind`. */
interface Run {
  readonly first: number;
  readonly behind: number;
}

/** The rows of each group of slots. */
function* groupRuns(slots: Int32Array, order: Uint32Array, slotsPerGroup: number): Generator<Run> {
  for (let first = 0, behind = 0; first < order.length; first = behind) {
    const limit = (Math.floor(slots[order[first]] / slotsPerGroup) + 1) * slotsPerGroup;
    while (behind < order.length && slots[order[behind]] < limit) behind++;
    yield { first, behind };
  }
}

/** Rows that are read at once: no slot is beyond a gap, and their slots together have an upper limit. */
function* readRuns(
  slots: Int32Array,
  order: Uint32Array,
  { first: begin, behind: end }: Run,
  slotBytes: number,
): Generator<Run> {
  const most = Math.max(1, Math.floor(chunkBytes / slotBytes));
  const gap = Math.floor(gapBytes / slotBytes);
  for (let first = begin, behind = begin; first < end; first = behind) {
    const slot = slots[order[first]];
    behind++;
    while (behind < end) {
      const next = slots[order[behind]];
      if (next - slot >= most || next - slots[order[behind - 1]] - 1 > gap) break;
      behind++;
    }
    yield { first, behind };
  }
}

/** A tensor that is stored in slots, as its header describes it. */
export interface StoredLayout {
  readonly format: FormatName;
  readonly heads: number;
  readonly dim: number;
}

/**
 * The rows that count of a tensor of a file, as the canonical [1, heads, rows, dim]: no slot is read that lies far from
 * those that count, and each once, in the order of the file.
 * @throws RequestError as `TensorFile.read`
 */
export async function gatherStored(
  file: TensorFile,
  name: string,
  { format, heads, dim }: StoredLayout,
  { slots, headsFirst, slotsPerGroup }: StoredRows,
): Promise<Tensor> {
  const rowBytes = dim * elementBytes(format);
  const shape = [1, heads, slots.length, dim];
  const purpose = `${tensorIn(file.path, name)}: the rows that count`;
  const buffer = allocate(heads * slots.length * rowBytes, purpose);
  if (buffer.byteLength === 0) return { format, shape, data: elementsOver(format, buffer) };
  const target = new Uint8Array(buffer);
  const order = bySlot(slots);
  const copy = async ({ first, behind }: Run, planeHeads: number, plane: number, skip: number) => {
    const begin = slots[order[first]];
    const count = slots[order[behind - 1]] + 1 - begin;
    const width = planeHeads * dim;
    const source = bytesOf(await file.readElements(name, (skip + begin) * width, count * width));
    for (let at = first; at < behind; at++)
      for (let head = 0; head < planeHeads; head++) {
        const from = ((slots[order[at]] - begin) * planeHeads + head) * rowBytes;
        const row = (plane + head) * slots.length + order[at];
        target.set(source.subarray(from, from + rowBytes), row * rowBytes);
      }
  };
  if (!headsFirst) {
    const all = { first: 0, behind: order.length };
    for (const run of readRuns(slots, order, all, heads * rowBytes)) await copy(run, heads, 0, 0);
  } else
    for (const group of groupRuns(slots, order, slotsPerGroup)) {
      const index = Math.floor(slots[order[group.first]] / slotsPerGroup);
      for (let head = 0; head < heads; head++) {
        // Before the slots of this head are those of all heads of the groups before, and of the heads before it.
        const skip = (index * (heads - 1) + head) * slotsPerGroup;
        for (const run of readRuns(slots, order, group, rowBytes)) await copy(run, 1, head, skip);
      }
    }
  return { format, shape, data: elementsOver(format, buffer) };
}
