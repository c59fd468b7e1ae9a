/**
 * A function that returns what `create` makes, made at the first call and kept: tables that cost
 * milliseconds to compute cost nothing to those who import them and do not use them.
 */
export function lazily<T>(create: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: create() }).value;
}

/** What works in a WebAssembly memory of its own. */
interface WorkingMemory {
  readonly kernels: { readonly memory: WebAssembly.Memory };
}

/** Below this is what the compiler placed, constants that no loop writes to, and the structs of the allocator. */
const firstUsed = 65536;

/** So many that are not lent are kept: those of the kinds that were lent last. */
const mostIdle = 8;

/** What was made of stretches of buffers. */
interface Remembered {
  readonly data: readonly ArrayBufferView[];
  readonly value: unknown;
}

/** Whether both are of the same bytes. */
function isSameView(a: ArrayBufferView, b: ArrayBufferView): boolean {
  return a.buffer === b.buffer && a.byteOffset === b.byteOffset && a.byteLength === b.byteLength;
}

/**
 * Lends WebAssembly instances with their memories, and takes them back for who asks for the same kind next: V8 frees those that
 * are dropped by its slowest collection only, which throws compiled code away with them. What is lent is as good as new. Keeps besides what several
 * loops need of one owner.
 */
export class WorkingMemories {
  /** The kind of each that is not lent, the one that came back last at the end. */
  readonly #idle: { readonly kind: string; readonly memory: WorkingMemory }[] = [];

  /**
   * What was made last of each kind, and for whom. Not by a weak reference: one that is made or read keeps its object until the
   * current job ends, and an audit on one thread is one job, which would hold the exact values of all its parts.
   */
  readonly #kept = new Map<string, { readonly owner: object; readonly value: unknown }>();

  /** What was made of data in the current scope, the last of each kind. */
  #scope: object | null = null;
  readonly #remembered = new Map<string, Remembered>();

  /**
   * What `work` returns, given a memory that is nobody else's until then.
   * @param kind all that `create` depends on, its type included
   */
  lend<Memory extends WorkingMemory, Result>(
    kind: string,
    create: () => Memory,
    work: (memory: Memory) => Result,
  ): Result {
    const at = this.#idle.findLastIndex((one) => one.kind === kind);
    const memory = at < 0 ? create() : (this.#idle.splice(at, 1)[0].memory as Memory);
    try {
      return work(memory);
    } finally {
      new Uint8Array(memory.kernels.memory.buffer, firstUsed).fill(0);
      this.#idle.push({ kind, memory });
      if (this.#idle.length > mostIdle) this.#idle.shift();
    }
  }

  /**
   * What `make` returns, unless what was kept of that kind last is this owner's.
   * @param kind all that `make` depends on but for the owner, its type included
   */
  keep<Value>(kind: string, owner: object, make: () => Value): Value {
    const last = this.#kept.get(kind);
    if (last?.owner === owner) return last.value as Value;
    const value = make();
    this.#kept.set(kind, { owner, value });
    return value;
  }

  /** Begins to remember what is made of data that do not change while the scope is the same; forgets what was made in another. */
  enter(scope: object): void {
    if (scope === this.#scope) return;
    this.#remembered.clear();
    this.#scope = scope;
  }

  /**
   * What `make` returns, unless what was made of that kind last, in this scope, was made of the same elements of buffers.
   * Outside of scopes nothing is remembered.
   * @param kind all that `make` depends on but for the data, its type included
   */
  remember<Value>(kind: string, data: readonly ArrayBufferView[], make: () => Value): Value {
    if (this.#scope === null) return make();
    const last = this.#remembered.get(kind);
    if (last?.data.every((view, i) => isSameView(view, data[i])) === true)
      return last.value as Value;
    const value = make();
    this.#remembered.set(kind, { data, value });
    return value;
  }
}

/** The bytes that base64 stands for: how WebAssembly is carried in the modules that the build generates. */
function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/**
 * A function that makes instances of a module from its base64, each with memory of its own; the module
 * is compiled once, at the first. The error of an abort gives `name`.
 */
export function instantiator<Exports>(binary: string, name: string): () => Exports {
  const module = lazily(() => new WebAssembly.Module(bytesOfBase64(binary)));
  const abort = (): void => {
    throw new Error(`the WebAssembly kernels of ${name} aborted`);
  };
  // AssemblyScript's `JSMath`.
  const env = { abort, 'Math.exp': Math.exp, 'Math.tanh': Math.tanh };
  return () => new WebAssembly.Instance(module(), { env }).exports as unknown as Exports;
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
