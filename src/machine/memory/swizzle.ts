/** How 16-byte chunks of a matrix are permuted in shared memory. */
export type SwizzleMode = 'none' | '32B' | '64B' | '128B';

/** What a mode means. */
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
 * Where the byte lies whose address would be `address` (an absolute one, in bytes) without swizzling. Its
 * own inverse, and a permutation of every aligned span.
 */
export function swizzleAddress(mode: SwizzleMode, address: number): number {
  return address ^ ((address >> 3) & swizzles[mode].addressMask);
}
