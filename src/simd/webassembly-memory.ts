/** Where data of a WebAssembly module goes, above what the compiler placed. */
export interface Allocator {
  /** A block of `bytes` bytes, aligned to 16, zeroed; the address. Views made before stay valid. */
  readonly allocate: (bytes: number) => number;
}

const pageBytes = 65536;
const alignment = 16;

/**
 * Hands out memory from the second page on: room for `bytes` bytes and, for the gaps of alignment, a
 * page more. The memory does not grow later, so that views of it stay valid.
 * @throws Error when more is asked for than there is.
 */
export function createAllocator(memory: WebAssembly.Memory, bytes: number): Allocator {
  const end = (Math.ceil(bytes / pageBytes) + 2) * pageBytes;
  const missing = end - memory.buffer.byteLength;
  if (missing > 0) memory.grow(missing / pageBytes);
  let next = pageBytes;
  return {
    allocate: (size) => {
      const address = next;
      next = Math.ceil((next + size) / alignment) * alignment;
      if (next > end) throw new Error(`no room for ${size} more bytes of WebAssembly memory`);
      return address;
    },
  };
}
