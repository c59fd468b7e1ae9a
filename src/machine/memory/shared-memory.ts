import { architectures } from '../../hardware/index.js';
import { RequestError } from '../../request-error.js';
import type { MemoryViolation } from './violation.js';

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

/** What {@link SharedMemory.allocate} answers. */
export type SharedAllocation =
  | { readonly ok: true; readonly address: number }
  | { readonly ok: false; readonly violation: MemoryViolation };

/** The shared memory of one CTA: one buffer, little-endian, seen as bytes, halves and words. */
export interface SharedMemory {
  readonly limitBytes: number;
  /** The bytes that were asked for: up to the end of the last region, or all while there is none. */
  readonly launchedBytes: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly halves: Uint16Array<ArrayBuffer>;
  readonly words: Uint32Array<ArrayBuffer>;
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
  const buffer = new ArrayBuffer(limitBytes);
  const regions: SharedRegion[] = [];
  let end = 0;
  return {
    limitBytes,
    get launchedBytes() {
      return regions.length === 0 ? limitBytes : end;
    },
    bytes: new Uint8Array(buffer),
    halves: new Uint16Array(buffer),
    words: new Uint32Array(buffer),
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
