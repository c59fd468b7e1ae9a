import { bytesOfBase64 } from '../words/index.js';
import { lazily } from './lazily.js';

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

/** Writes a struct of a module, as the module's generated file does it. */
export interface StructWriter<Fields> {
  readonly bytes: number;
  readonly write: (memory: DataView, at: number, fields: Fields) => void;
}

/** A struct that has its place in memory. */
export interface PlacedStruct<Fields> {
  readonly address: number;
  /** Writes all fields; returns the address. */
  readonly write: (fields: Fields) => number;
}

/** Where data of a WebAssembly module goes, above what the compiler placed. */
export interface Allocator {
  /** A block of `bytes` bytes, aligned to 16, zeroed; the address. Views made before stay valid. */
  readonly allocate: (bytes: number) => number;
  /** A copy of the table in a block of its own; the address. */
  readonly place: (table: ArrayBufferView) => number;
  /** A place for a struct. What is written there stays while the memory is lent again and again. */
  readonly struct: <Fields>(writer: StructWriter<Fields>) => PlacedStruct<Fields>;
}

const pageBytes = 65536;
/** Structs are in the first page, behind what the compiler placed. */
const firstStruct = 32768;
const alignment = 16;

/**
 * Hands out memory from the second page on: room for `bytes` bytes and, for the gaps of alignment, a
 * page more. Structs have room of their own. The memory does not grow later, so that views of it stay valid.
 * @throws Error when more is asked for than there is.
 */
export function createAllocator(memory: WebAssembly.Memory, bytes: number): Allocator {
  const end = (Math.ceil(bytes / pageBytes) + 2) * pageBytes;
  const missing = end - memory.buffer.byteLength;
  if (missing > 0) memory.grow(missing / pageBytes);
  const take = (first: number, limit: number) => {
    let next = first;
    return (size: number): number => {
      const address = next;
      next = Math.ceil((next + size) / alignment) * alignment;
      if (next > limit) throw new Error(`no room for ${size} more bytes of WebAssembly memory`);
      return address;
    };
  };
  const allocate = take(pageBytes, end);
  const allocateStruct = take(firstStruct, pageBytes);
  const view = new DataView(memory.buffer);
  return {
    allocate,
    place: (table) => {
      const address = allocate(table.byteLength);
      const source = new Uint8Array(table.buffer, table.byteOffset, table.byteLength);
      new Uint8Array(memory.buffer, address, table.byteLength).set(source);
      return address;
    },
    struct: ({ bytes, write }) => {
      const address = allocateStruct(bytes);
      return {
        address,
        write: (fields) => {
          write(view, address, fields);
          return address;
        },
      };
    },
  };
}
