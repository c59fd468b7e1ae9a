import { bytesOfBase64 } from '../words/index.js';
import { lazily } from '../reuse.js';

/**
 * A function that makes instances of a module from its base64, each with memory of its own; the module
 * is compiled once, at the first. The error of an abort gives `name`.
 */
export function instantiator<Exports>(binary: string, name: string): () => Exports {
  const module = lazily(() => new WebAssembly.Module(bytesOfBase64(binary)));
  const abort = (): void => {
    throw new Error(`the WebAssembly kernels of ${name} aborted`);
  };
  return () => new WebAssembly.Instance(module(), { env: { abort } }).exports as unknown as Exports;
}

/** Where data of a WebAssembly module goes, above what the compiler placed. */
export interface Allocator {
  /** A block of `bytes` bytes, aligned to 16, zeroed; the address. Views made before stay valid. */
  readonly allocate: (bytes: number) => number;
  /** A copy of the table in a block of its own; the address. */
  readonly place: (table: ArrayBufferView) => number;
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
  const allocate = (size: number): number => {
    const address = next;
    next = Math.ceil((next + size) / alignment) * alignment;
    if (next > end) throw new Error(`no room for ${size} more bytes of WebAssembly memory`);
    return address;
  };
  return {
    allocate,
    place: (table) => {
      const address = allocate(table.byteLength);
      const source = new Uint8Array(table.buffer, table.byteOffset, table.byteLength);
      new Uint8Array(memory.buffer, address, table.byteLength).set(source);
      return address;
    },
  };
}
