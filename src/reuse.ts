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

/** Below this is what the compiler placed: constants, which no loop writes to. */
const firstUsed = 65536;

/** So many that are not lent are kept: those of the kinds that were lent last. */
const mostIdle = 8;

/**
 * Lends WebAssembly instances with their memories, and takes them back for who asks for the same kind next: V8 frees those that
 * are dropped by its slowest collection only, which throws compiled code away with them. What is lent is as good as new. Keeps besides what several
 * loops need of one owner.
 */
export class WorkingMemories {
  /** The kind of each that is not lent, the one that came back last at the end. */
  readonly #idle: { readonly kind: string; readonly memory: WorkingMemory }[] = [];

  /** What was made last of each kind, and for whom. */
  readonly #kept = new Map<string, { readonly owner: WeakRef<object>; readonly value: unknown }>();

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
    if (last?.owner.deref() === owner) return last.value as Value;
    const value = make();
    this.#kept.set(kind, { owner: new WeakRef(owner), value });
    return value;
  }
}
