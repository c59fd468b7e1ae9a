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
