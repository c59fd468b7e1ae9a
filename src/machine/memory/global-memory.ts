import { RequestError } from '../../request-error.js';
import { type ByteStore, byteStoreOf, type ByteSet, createByteSet } from './byte-store.js';

/** Options of {@link AllocatedMemory.allocate}. */
export interface AllocationOptions {
  /** Name of the allocation in findings and counters. */
  readonly name: string;
  /** Initial contents, which become the memory itself; null for `bytes` that nobody has written. */
  readonly contents: Uint8Array | null;
  /** Size in bytes, if it has no contents. */
  readonly bytes?: number;
  /** Shape and element size, for findings; the last index is the innermost. */
  readonly tensor?: { readonly shape: readonly number[]; readonly elementBits: number };
  /** Whether a store to it is a finding; default false. */
  readonly isReadOnly?: boolean;
}

/** An allocation: a tensor, a scratch buffer, a variable of a module. */
export interface Allocation {
  readonly name: string;
  /** The address of its first byte, and that behind its last one. */
  readonly base: number;
  readonly end: number;
  readonly byteLength: number;
  readonly store: ByteStore;
  readonly tensor: AllocationOptions['tensor'] | null;
  readonly isReadOnly: boolean;
  /** The bytes that have contents; null for all. */
  readonly written: ByteSet | null;
  /** Whether it has been freed. */
  isFreed: boolean;
}

/** A state space of allocations that lie far apart, so that an address shows which one it is meant for. */
export interface AllocatedMemory {
  /**
   * A new allocation. Throws a RequestError for a size that is no positive integer or that no allocation can
   * have, for contents that do not begin at a multiple of 16 bytes of their buffer, and when there are too many.
   */
  readonly allocate: (options: AllocationOptions) => Allocation;
  /** Ends an allocation; accesses to it are findings from now on. */
  readonly free: (allocation: Allocation) => void;
  /** The allocation that an address lies in or next to, freed or not: within its red zones. */
  readonly find: (address: number) => Allocation | undefined;
  readonly allocations: readonly Allocation[];
}

/** Contents may be viewed as 16-byte vectors. */
const contentsAlignment = 16;

/** Every allocation has an equal part of the space to itself, and lies in the middle of it. */
function createAllocatedMemory(
  what: string,
  partBytes: number,
  mostParts: number,
): AllocatedMemory {
  const allocations: Allocation[] = [];
  const mostBytes = partBytes / 2;
  return {
    allocations,
    allocate: (options) => {
      const { name, contents, tensor = null, isReadOnly = false } = options;
      const byteLength = contents?.byteLength ?? options.bytes ?? 0;
      if (!(Number.isInteger(byteLength) && byteLength > 0 && byteLength <= mostBytes))
        throw new RequestError(
          `${name} cannot have ${byteLength} bytes of ${what} memory; pass 1 to ${mostBytes}`,
        );
      if (contents !== null && contents.byteOffset % contentsAlignment !== 0)
        throw new RequestError(
          `${name}: contents at byte ${contents.byteOffset} of their buffer; copy them to a multiple of ${contentsAlignment}`,
        );
      if (allocations.length + 1 >= mostParts)
        throw new RequestError(`${what} memory has ${mostParts - 1} allocations already`);
      // Part 0 stays empty, so that null pointers lie next to nothing.
      const base = (allocations.length + 1) * partBytes + partBytes / 4;
      const allocation: Allocation = {
        name,
        base,
        end: base + byteLength,
        byteLength,
        store: byteStoreOf(contents ?? new Uint8Array(byteLength)),
        tensor,
        isReadOnly,
        written: contents === null ? createByteSet(byteLength) : null,
        isFreed: false,
      };
      allocations.push(allocation);
      return allocation;
    },
    free: (allocation) => {
      allocation.isFreed = true;
    },
    find: (address) => allocations[Math.floor(address / partBytes) - 1],
  };
}

/**
 * The global memory of a device: allocations of up to 4 GiB with red zones of at least 2 GiB on either side, at
 * multiples of 256 bytes, below 2^47. Addresses are those of the generic space too.
 */
export function createGlobalMemory(): AllocatedMemory {
  return createAllocatedMemory('global', 2 ** 33, 2 ** 14);
}

/** Constant memory: variables of up to 128 KiB with red zones of at least 64 KiB on either side, at addresses below 2^32. */
export function createConstantMemory(): AllocatedMemory {
  return createAllocatedMemory('constant', 2 ** 18, 2 ** 14);
}

/** The place of a byte of an allocation: `element [0, 12, 3] of "q"`, or its number. */
export function describeByte({ name, tensor }: Allocation, byte: number): string {
  if (tensor === null || tensor === undefined) return `byte ${byte} of "${name}"`;
  let rest = Math.floor((byte * 8) / tensor.elementBits);
  const index = tensor.shape.map(() => 0);
  for (let axis = index.length - 1; axis >= 0; axis--) {
    const size = tensor.shape[axis];
    index[axis] = axis === 0 ? rest : rest % size;
    rest = Math.floor(rest / size);
  }
  return `element [${index.join(', ')}] of "${name}"`;
}

/**
 * Words for the location of an address: in an allocation, a number of bytes before or behind one, or next
 * to none.
 *
 * @param allocation the result of `find` for it
 */
export function describeAddress(allocation: Allocation | undefined, address: number): string {
  const hexadecimal = `0x${address.toString(16)}`;
  if (allocation === undefined) return `address ${hexadecimal}, where nothing is allocated`;
  const { base, end, name } = allocation;
  if (address < base) return `${base - address} bytes before "${name}"`;
  if (address >= end)
    return address === end
      ? `the end of "${name}"`
      : `${address - end} bytes past the end of "${name}"`;
  return describeByte(allocation, address - base);
}
