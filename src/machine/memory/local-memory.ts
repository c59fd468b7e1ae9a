import { type ByteStore, createByteStore, type ByteSet, createByteSet } from './byte-store.js';

/** Lanes of a warp. */
const lanes = 32;

/** The local memory of a warp's threads: equally many bytes for each, one thread's after another's. */
export interface LocalMemory {
  /** Bytes of each thread; a multiple of 16. */
  readonly threadBytes: number;
  readonly store: ByteStore;
  /** The bytes that have contents, by their number among those of all threads. */
  readonly written: ByteSet;
}

/** Local memory that nobody has written, of at least `bytes` bytes for each thread. */
export function createLocalMemory(bytes: number): LocalMemory {
  const threadBytes = Math.ceil(bytes / 16) * 16;
  return {
    threadBytes,
    store: createByteStore(threadBytes * lanes),
    written: createByteSet(threadBytes * lanes),
  };
}
