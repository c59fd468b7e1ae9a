import type { PatternArray } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import type { ByteStore } from './byte-store.js';
import { checkMatrixDescriptor, type MatrixDescriptor } from './matrix-descriptor.js';
import {
  type MemoryViolation,
  requireLegal,
  type SharedMemory,
  swizzleAddress,
  swizzles,
} from './shared-memory.js';

/** The part of a matrix in shared memory that one instruction reads. */
export interface OperandExtent {
  /** M of A, N of B. */
  readonly rows: number;
  readonly k: number;
  readonly bytesPerElement: 1 | 2;
}

const chunkBytes = 16;
const chunkWords = 4;

/**
 * Addresses of the 16-byte chunks that hold an operand, swizzled. K major: [row][chunk of k]; else
 * [k][chunk of rows], and the last chunk may be needed in part. The layouts are the canonical ones of
 * the PTX ISA 9.2 (sections 9.7.16.3 "Major-ness supported by Strides" and 9.7.16.10.6): with T elements
 * in a chunk and s chunks in a span,
 *
 * - K major, not swizzled: ((8, m), (T, 2k)) : ((T, SBO), (1, LBO))
 * - K major, swizzled: ((8, m), (T, 2k)) : ((s·T, SBO), (1, T))
 * - M or N major, not swizzled: ((T, 1, m), (8, k)) : ((1, T, SBO), (T, LBO))
 * - M or N major, swizzled: ((T, s, m), (8, k)) : ((1, T, LBO), (s·T, SBO))
 *
 * so an instruction that begins inside a span (k advanced by 32 bytes in rows of 128) begins at an
 * address inside the span. Nothing is checked ({@link checkOperand}).
 */
export function descriptorChunks(descriptor: MatrixDescriptor, extent: OperandExtent): Int32Array {
  const { lines, chunks, lineOffset, chunkOffset } = chunkOffsets(descriptor, extent);
  const { address, swizzle } = descriptor;
  const addresses = new Int32Array(lines * chunks);
  for (let line = 0; line < lines; line++) {
    const start = address + lineOffset(line);
    for (let chunk = 0; chunk < chunks; chunk++)
      addresses[line * chunks + chunk] = swizzleAddress(swizzle, start + chunkOffset(chunk));
  }
  return addresses;
}

/** Answers that are kept at most. */
const mostRemembered = 4096;

/** `descriptorChunks` that remembers its answers: a kernel's descriptors come again and again. */
export function rememberChunks(): typeof descriptorChunks {
  const known = new Map<string, Int32Array>();
  return (descriptor, extent) => {
    const { address, leadingByteOffset, strideByteOffset, swizzle, major } = descriptor;
    const { rows, k, bytesPerElement } = extent;
    const key = `${address} ${leadingByteOffset} ${strideByteOffset} ${swizzle} ${major} ${rows} ${k} ${bytesPerElement}`;
    let chunks = known.get(key);
    if (chunks === undefined) {
      if (known.size >= mostRemembered) known.clear();
      chunks = descriptorChunks(descriptor, extent);
      known.set(key, chunks);
    }
    return chunks;
  };
}

/** Offsets of chunks from the descriptor's address on, without swizzling: chunks of lines. */
interface ChunkOffsets {
  /** Rows of M or N if K is major, else k. */
  readonly lines: number;
  readonly chunks: number;
  readonly lineOffset: (line: number) => number;
  readonly chunkOffset: (chunk: number) => number;
}

function chunkOffsets(
  { leadingByteOffset, strideByteOffset, swizzle, major }: MatrixDescriptor,
  { rows, k, bytesPerElement }: OperandExtent,
): ChunkOffsets {
  const [lines, elements] = major === 'k' ? [rows, k] : [k, rows];
  const { spanBytes } = swizzles[swizzle];
  const isSwizzled = swizzle !== 'none';
  // Eight lines, each a span long, make a group.
  const groupOffset = major === 'k' || isSwizzled ? strideByteOffset : leadingByteOffset;
  const spanOffset = major === 'k' || isSwizzled ? leadingByteOffset : strideByteOffset;
  const chunksInSpan = spanBytes / chunkBytes;
  return {
    lines,
    chunks: Math.ceil((elements * bytesPerElement) / chunkBytes),
    lineOffset: (line) => (line & 7) * spanBytes + (line >> 3) * groupOffset,
    // An instruction's K is never longer than a span of a swizzled layout in which K is major.
    chunkOffset:
      major === 'k' && isSwizzled
        ? (chunk) => chunk * chunkBytes
        : (chunk) =>
            (chunk % chunksInSpan) * chunkBytes + Math.floor(chunk / chunksInSpan) * spanOffset,
  };
}

/** The error in reading an operand, or null: a malformed descriptor, or bytes beyond the end of shared memory. */
export function checkOperand(
  shared: Pick<SharedMemory, 'launchedBytes'>,
  descriptor: MatrixDescriptor,
  extent: OperandExtent,
): MemoryViolation | null {
  const malformed = checkMatrixDescriptor(descriptor);
  if (malformed !== null) return malformed;
  const { lines, chunks, lineOffset, chunkOffset } = chunkOffsets(descriptor, extent);
  const { spanBytes } = swizzles[descriptor.swizzle];
  // Offsets grow up to the end of each group of lines and of each span, and from one to the next.
  const lineEnd = largestOffset(lineOffset, lines, 8);
  const chunkEnd = largestOffset(chunkOffset, chunks, spanBytes / chunkBytes);
  // Swizzling moves chunks within aligned spans, and shared memory has a whole number of spans.
  const last = descriptor.address + lineEnd + chunkEnd;
  const end = (Math.floor(last / spanBytes) + 1) * spanBytes;
  if (end <= shared.launchedBytes) return null;
  const message = `a matrix of ${extent.rows} × ${extent.k} at byte ${descriptor.address} ends at byte ${end} of shared memory, which has ${shared.launchedBytes}`;
  return { kind: 'shared-overflow', message };
}

/** The largest of `count` offsets that grow within runs of this length and from run to run. */
function largestOffset(offset: (index: number) => number, count: number, run: number): number {
  const wholeRuns = count - (count % run);
  return Math.max(offset(count - 1), wholeRuns > 0 ? offset(wholeRuns - 1) : 0);
}

/**
 * Writes an operand's bit patterns to `target`, [rows][k] whatever the major dimension, from shared memory.
 * `target` is a Uint8Array or Uint16Array of rows · k elements, by their size, at a multiple of four bytes
 * of its buffer. Throws a RequestError when it is not, and for errors that {@link checkOperand} finds.
 *
 * @param chunksOf the addresses of the chunks; {@link rememberChunks} for frequent calls
 */
export function gatherOperand(
  shared: GatheredMemory,
  descriptor: MatrixDescriptor,
  extent: OperandExtent,
  target: PatternArray,
  chunksOf: typeof descriptorChunks = descriptorChunks,
): void {
  const { rows, k, bytesPerElement } = extent;
  if (target.length !== rows * k || target.BYTES_PER_ELEMENT !== bytesPerElement)
    throw new RequestError(
      `${rows} × ${k} elements of ${bytesPerElement} bytes do not fit an array of ${target.length} elements of ${target.BYTES_PER_ELEMENT} bytes; pass one of their number and size`,
    );
  requireLegal(checkOperand(shared, descriptor, extent));
  const chunks = chunksOf(descriptor, extent);
  if (descriptor.major === 'k') copyChunks(shared, chunks, target);
  else transposeChunks(shared, chunks, extent, target);
}

/** What is gathered from: a CTA's shared memory, or a plane of its tags. */
type GatheredMemory = Pick<SharedMemory, 'store' | 'halves' | 'launchedBytes'>;

/** The shared memory with a plane of its tags in place of its bytes. */
export function planeOfShared(
  shared: SharedMemory,
  planeOf: (store: ByteStore) => ByteStore,
): GatheredMemory {
  // Planes of shared memory are stores of their own, as it is one.
  const store = planeOf(shared.store) as ByteStore<ArrayBuffer>;
  return {
    store,
    halves: new Uint16Array(store.words.buffer),
    launchedBytes: shared.launchedBytes,
  };
}

/** Copies chunks one behind the other: K major, whose rows are whole numbers of chunks. */
function copyChunks(shared: GatheredMemory, chunks: Int32Array, target: PatternArray): void {
  const words = new Uint32Array(target.buffer, target.byteOffset, target.byteLength / 4);
  const source = shared.store.words;
  for (let i = 0, to = 0; i < chunks.length; i++, to += chunkWords) {
    const from = chunks[i] >> 2;
    words[to] = source[from];
    words[to + 1] = source[from + 1];
    words[to + 2] = source[from + 2];
    words[to + 3] = source[from + 3];
  }
}

function transposeChunks(
  shared: GatheredMemory,
  chunks: Int32Array,
  { rows, k, bytesPerElement }: OperandExtent,
  target: PatternArray,
): void {
  const source = bytesPerElement === 2 ? shared.halves : shared.store.bytes;
  const elements = chunkBytes / bytesPerElement;
  const perLine = chunks.length / k;
  for (let line = 0; line < k; line++)
    for (let chunk = 0; chunk < perLine; chunk++) {
      const from = chunks[line * perLine + chunk] / bytesPerElement;
      const firstRow = chunk * elements;
      const count = Math.min(elements, rows - firstRow);
      for (let i = 0; i < count; i++) target[(firstRow + i) * k + line] = source[from + i];
    }
}
