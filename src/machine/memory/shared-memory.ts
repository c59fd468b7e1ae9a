import { RequestError } from '../../request-error.js';
import { architectures } from '../../hardware/index.js';
import { type ByteStore, createByteStore } from './byte-store.js';

/** Errors of an access to a memory, or of its use: the kinds of findings of the machine. */
export type MemoryViolationKind =
  | 'lane-window'
  | 'tensor-allocation'
  | 'shared-overflow'
  | 'out-of-bounds'
  | 'state-space'
  | 'uninitialised'
  | 'misaligned'
  | 'exited-cta'
  | 'instruction-shape';

/** An illegal use of a memory, as data: its kind, and one sentence on what happened and where. */
export interface MemoryViolation {
  readonly kind: MemoryViolationKind;
  readonly message: string;
}

/**
 * Throws a RequestError with the violation's message; does nothing for null. Transfers begin with it:
 * callers that want a finding instead of an exception call the transfer's check first.
 */
export function requireLegal(violation: MemoryViolation | null): void {
  if (violation !== null) throw new RequestError(violation.message);
}

/** Permutation of 16-byte chunks of a matrix in shared memory. */
export type SwizzleMode = 'none' | '32B' | '64B' | '128B';

/** Parameters of a swizzling mode. */
export interface Swizzle {
  /** Bytes of one row of the pattern: chunks are permuted within. For `none` one chunk. */
  readonly spanBytes: number;
  /** Bytes after which the pattern repeats, and to which its start is aligned. */
  readonly patternBytes: number;
  /** The address bits that change: each by exclusive or with the bit three places above. */
  readonly addressMask: number;
  /** Bits 61 to 63 of a shared memory descriptor of tcgen05. */
  readonly descriptorCode: number;
}

/**
 * The swizzling modes, with atoms of 16 bytes. Sources: PTX ISA 9.2, "Shared Memory Descriptor" (codes,
 * and table 41 for the alignment of patterns) and "Canonical Layouts" (the functions Swizzle<0..3, 4, 3>);
 * CUDA C++ Programming Guide, "TMA swizzle". The mode of 128 bytes with atoms of 32 bytes (code 1),
 * which transposed tf32 operands need, is left out.
 */
export const swizzles: Readonly<Record<SwizzleMode, Swizzle>> = {
  none: { spanBytes: 16, patternBytes: 16, addressMask: 0, descriptorCode: 0 },
  '32B': { spanBytes: 32, patternBytes: 256, addressMask: 0x10, descriptorCode: 6 },
  '64B': { spanBytes: 64, patternBytes: 512, addressMask: 0x30, descriptorCode: 4 },
  '128B': { spanBytes: 128, patternBytes: 1024, addressMask: 0x70, descriptorCode: 2 },
};

/**
 * The address of the byte whose address would be `address` (an absolute one, in bytes) without swizzling.
 * Its own inverse, and a permutation of every aligned span.
 */
export function swizzleAddress(mode: SwizzleMode, address: number): number {
  return address ^ ((address >> 3) & swizzles[mode].addressMask);
}

/** Most bytes of shared memory that one CTA can have: 227 KB, of the 228 KB of an SM. */
export const sharedMemoryLimits = {
  sm_90: architectures.sm_90.sharedBytes,
  sm_100: architectures.sm_100.sharedBytes,
  sm_103: architectures.sm_103.sharedBytes,
} as const;

/** A named part of a CTA's shared memory. */
export interface SharedRegion {
  readonly name: string;
  /** Byte offset in the CTA's window. */
  readonly address: number;
  readonly bytes: number;
}

/** Result of {@link SharedMemory.allocate}. */
export type SharedAllocation =
  | { readonly ok: true; readonly address: number }
  | { readonly ok: false; readonly violation: MemoryViolation };

/** The shared memory of one CTA. */
export interface SharedMemory {
  readonly limitBytes: number;
  /** The bytes requested at launch: up to the end of the last region, or all while there is none. */
  readonly launchedBytes: number;
  readonly store: ByteStore<ArrayBuffer>;
  /** Its bytes as halves of words. */
  readonly halves: Uint16Array<ArrayBuffer>;
  /** The regions so far, in ascending address. */
  readonly regions: readonly SharedRegion[];
  /**
   * A region behind the last one, at the next multiple of `alignment` (bytes, a power of two), or the
   * violation when the memory is too small, which then stays as it was. Throws a RequestError for a
   * name that is taken, a size that is no positive integer and an alignment that is no power of two.
   */
  readonly allocate: (name: string, bytes: number, alignment: number) => SharedAllocation;
  /** The name of the region that the byte at this address lies in, or null. */
  readonly regionAt: (address: number) => string | null;
}

/**
 * An empty shared memory of zeros. `limitBytes`: a positive multiple of 128, by default the limit of
 * sm_100; throws a RequestError for any other.
 */
export function createSharedMemory(limitBytes: number = sharedMemoryLimits.sm_100): SharedMemory {
  if (!(Number.isInteger(limitBytes / 128) && limitBytes > 0))
    throw new RequestError(
      `a shared memory of ${limitBytes} bytes cannot be made; pass a positive multiple of 128`,
    );
  const store = createByteStore(limitBytes);
  const regions: SharedRegion[] = [];
  let end = 0;
  return {
    limitBytes,
    get launchedBytes() {
      return regions.length === 0 ? limitBytes : end;
    },
    store,
    halves: new Uint16Array(store.words.buffer),
    regions,
    allocate: (name, bytes, alignment) => {
      checkRegion(regions, name, bytes, alignment);
      const address = Math.ceil(end / alignment) * alignment;
      if (address + bytes > limitBytes) {
        const message = `${name} of ${bytes} bytes would end at byte ${address + bytes} of shared memory, which has ${limitBytes}`;
        return { ok: false, violation: { kind: 'shared-overflow', message } };
      }
      regions.push({ name, address, bytes });
      end = address + bytes;
      return { ok: true, address };
    },
    regionAt: (address) => {
      const region = regions.findLast((candidate) => candidate.address <= address);
      return region !== undefined && address < region.address + region.bytes ? region.name : null;
    },
  };
}

function checkRegion(
  regions: readonly SharedRegion[],
  name: string,
  bytes: number,
  alignment: number,
): void {
  if (regions.some((region) => region.name === name))
    throw new RequestError(`shared memory has a region ${name} already; take another name`);
  if (!(Number.isInteger(bytes) && bytes > 0))
    throw new RequestError(`${name} cannot have ${bytes} bytes; pass a positive integer`);
  if (!(Number.isInteger(alignment) && alignment > 0 && Number.isInteger(Math.log2(alignment))))
    throw new RequestError(`${name} cannot be aligned to ${alignment} bytes; pass a power of two`);
}
