/** A set of bytes of a memory, by their number from 0. */
export interface ByteSet {
  /** Whether all of these bytes are in the set; they lie in the memory. */
  readonly hasAll: (first: number, count: number) => boolean;
  readonly addAll: (first: number, count: number) => void;
}

const wordBits = 32;

/** A mask of `count` bits of a word from `firstBit` on, which do not reach beyond the word. */
function bitsOf(firstBit: number, count: number): number {
  return count === wordBits ? -1 : ((1 << count) - 1) << firstBit;
}

/** An empty set of bytes of a memory of `bytes` bytes: one bit for each. */
export function createByteSet(bytes: number): ByteSet {
  const bits = new Int32Array(Math.ceil(bytes / wordBits));
  return {
    hasAll: (first, count) => {
      const end = first + count;
      for (let byte = first; byte < end;) {
        const bit = byte % wordBits;
        const part = Math.min(wordBits - bit, end - byte);
        const mask = bitsOf(bit, part);
        if ((bits[(byte - bit) / wordBits] & mask) !== mask) return false;
        byte += part;
      }
      return true;
    },
    addAll: (first, count) => {
      const end = first + count;
      for (let byte = first; byte < end;) {
        const bit = byte % wordBits;
        const part = Math.min(wordBits - bit, end - byte);
        bits[(byte - bit) / wordBits] |= bitsOf(bit, part);
        byte += part;
      }
    },
  };
}

/**
 * Bytes that registers or a memory hold: part of one buffer, little-endian, seen as bytes and as whole words. All copies are made
 * by {@link moveBytes}, so that whatever belongs to single bytes can follow them.
 */
export interface ByteStore<Memory extends ArrayBufferLike = ArrayBufferLike> {
  readonly bytes: Uint8Array<Memory>;
  readonly words: Uint32Array<Memory>;
  /** What the bytes stand for, where that is followed: their tags. Null where no byte has one. */
  tags: TagPlanes | null;
}

/**
 * The tags of a store's bytes, 32 bits each and 0 for none: plane p has byte p of each tag, in the place of the byte to which
 * it belongs. So whatever moves bytes moves their tags, once for each plane.
 */
export type TagPlanes = readonly [ByteStore, ByteStore, ByteStore, ByteStore];

/** A place in a store: its first byte is byte `offset`. */
export interface BytePlace {
  readonly store: ByteStore;
  readonly offset: number;
}

/** Places equally far apart: each is `stride` bytes behind the one before. */
export interface ByteRows extends BytePlace {
  readonly stride: number;
}

/** Bytes from which on a copy by the engine is faster than a loop. */
const longMove = 512;

/** A store of zeros; `byteLength` is a multiple of four. */
export function createByteStore(byteLength: number): ByteStore<ArrayBuffer> {
  const words = new Uint32Array(byteLength / 4);
  return { bytes: new Uint8Array(words.buffer), words, tags: null };
}

/** The tags of a store's bytes, of which none has one where none has had one so far. */
export function tagsOf(store: ByteStore): TagPlanes {
  const plane = () => createByteStore(Math.ceil(store.bytes.length / 4) * 4);
  return (store.tags ??= [plane(), plane(), plane(), plane()]);
}

/** The store whose bytes are those of an array, which begins at a multiple of four bytes of its buffer. */
export function byteStoreOf<Memory extends ArrayBufferLike>({
  buffer,
  byteOffset,
  byteLength,
}: Uint8Array<Memory> | Uint16Array<Memory> | Uint32Array<Memory>): ByteStore<Memory> {
  return {
    bytes: new Uint8Array(buffer, byteOffset, byteLength),
    words: new Uint32Array(buffer, byteOffset, Math.floor(byteLength / 4)),
    tags: null,
  };
}

/** A store of its own with a copy of `count` bytes, by default all from byte `first` on. */
export function copyOfBytes(
  from: ByteStore,
  first = 0,
  count: number = from.bytes.length - first,
): ByteStore<ArrayBuffer> {
  const copy = createByteStore(Math.ceil(count / 4) * 4);
  moveBytes(from, first, copy, 0, count);
  return copy;
}

/** Copies `count` bytes of a store, from byte `fromByte` on, to byte `toByte` of a store and those behind it; the two do not overlap. */
export function moveBytes(
  from: ByteStore,
  fromByte: number,
  to: ByteStore,
  toByte: number,
  count: number,
): void {
  if (from.tags !== null || to.tags !== null) moveTags(from, fromByte, to, toByte, count);
  if (((fromByte | toByte | count) & 3) !== 0 || count >= longMove) {
    moveOtherwise(from, fromByte, to, toByte, count);
    return;
  }
  const [source, target] = [from.words, to.words];
  const start = fromByte >>> 2;
  const end = start + (count >> 2);
  for (let i = start, at = toByte >>> 2; i < end; i++, at++) target[at] = source[i];
}

/** `moveBytes` for the tags of the bytes; where neither has some, nothing is made. */
function moveTags(
  from: ByteStore,
  fromByte: number,
  to: ByteStore,
  toByte: number,
  count: number,
): void {
  if (from.tags === null) {
    clearTags(to, toByte, count);
    return;
  }
  if (to.tags === null && !haveTags(from, fromByte, count)) return;
  const planes = tagsOf(to);
  for (let i = 0; i < planes.length; i++)
    moveBytes(from.tags[i], fromByte, planes[i], toByte, count);
}

/** Whether one of `count` bytes of a store has a tag. */
export function haveTags({ tags }: ByteStore, first: number, count: number): boolean {
  if (tags === null) return false;
  const areWords = ((first | count) & 3) === 0;
  const [start, end] = areWords ? [first >>> 2, (first + count) >>> 2] : [first, first + count];
  for (const plane of tags) {
    const parts = areWords ? plane.words : plane.bytes;
    for (let i = start; i < end; i++) if (parts[i] !== 0) return true;
  }
  return false;
}

/** `moveBytes` for bytes that are no whole words, or many. Apart, so that the engine inlines the other. */
function moveOtherwise(
  { bytes: source }: ByteStore,
  fromByte: number,
  { bytes: target }: ByteStore,
  toByte: number,
  count: number,
): void {
  if (count >= longMove) target.set(source.subarray(fromByte, fromByte + count), toByte);
  else for (let i = 0; i < count; i++) target[toByte + i] = source[fromByte + i];
}

/** Copies `count` bytes from each of so many places to the corresponding one: `moveBytes`, faster. */
export function moveRows(from: ByteRows, to: ByteRows, count: number, rows: number): void {
  const isWord = ((from.offset | from.stride | to.offset | to.stride) & 3) === 0 && count === 4;
  const isTagged = from.store.tags !== null || to.store.tags !== null;
  if (!isWord || isTagged) {
    for (let row = 0; row < rows; row++) {
      const [first, start] = [from.offset + row * from.stride, to.offset + row * to.stride];
      moveBytes(from.store, first, to.store, start, count);
    }
    return;
  }
  const [source, target] = [from.store.words, to.store.words];
  const [step, targetStep] = [from.stride >>> 2, to.stride >>> 2];
  let [i, at] = [from.offset >>> 2, to.offset >>> 2];
  for (let row = 0; row < rows; row++, i += step, at += targetStep) target[at] = source[i];
}

/** Overwrites `count` bytes by ones that come from nowhere: each is `value`. */
export function fillBytes(store: ByteStore, first: number, count: number, value: number): void {
  const { bytes } = store;
  for (let i = first; i < first + count; i++) bytes[i] = value;
  clearTags(store, first, count);
}

/** Takes the tags from `count` bytes. */
export function clearTags({ tags }: ByteStore, first: number, count: number): void {
  if (tags !== null) for (const plane of tags) fillBytes(plane, first, count, 0);
}

/** Overwrites `count` bytes, from an even one on, by ones that come from nowhere: 16 bits after 16 bits, each time `value`. */
export function fillHalves(store: ByteStore, first: number, count: number, value: number): void {
  for (let half = 0; half < 2; half++)
    for (let i = first + half; i < first + count; i += 2) store.bytes[i] = value >>> (8 * half);
  clearTags(store, first, count);
}

/** Whether `count` bytes of a store equal those of another. */
export function hasEqualBytes(
  one: ByteStore,
  firstOfOne: number,
  other: ByteStore,
  firstOfOther: number,
  count: number,
): boolean {
  for (let i = 0; i < count; i++)
    if (one.bytes[firstOfOne + i] !== other.bytes[firstOfOther + i]) return false;
  return true;
}
