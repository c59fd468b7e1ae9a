import type { PatternArray } from '../../../src/formats/index.js';
import type {
  MatrixDescriptor,
  Major,
  SharedMemory,
  SwizzleMode,
} from '../../../src/machine/memory/index.js';

/** A CuTe layout: nested shapes and strides, flattened; an index counts colexicographically. */
export interface Layout {
  readonly shape: readonly number[];
  readonly stride: readonly number[];
}

/** What a CuTe layout maps an index to. */
export function offsetOf({ shape, stride }: Layout, index: number): number {
  let rest = index;
  return shape.reduce((sum, size, i) => {
    const coordinate = i === shape.length - 1 ? rest : rest % size;
    rest = Math.floor(rest / size);
    return sum + coordinate * stride[i];
  }, 0);
}

/** B of Swizzle<B, 4, 3>, on byte addresses. */
const swizzleBits: Readonly<Record<SwizzleMode, number>> = {
  none: 0,
  '32B': 1,
  '64B': 2,
  '128B': 3,
};

/** Swizzle<B, 4, 3> bit by bit: address bit 4 + i is added, without carry, to bit 7 + i. */
export function swizzleBitwise(mode: SwizzleMode, address: number): number {
  let result = address;
  for (let i = 0; i < swizzleBits[mode]; i++)
    if (Math.floor(address / 2 ** (7 + i)) % 2 === 1)
      result += Math.floor(address / 2 ** (4 + i)) % 2 === 1 ? -(2 ** (4 + i)) : 2 ** (4 + i);
  return result;
}

/**
 * The canonical layouts as the PTX ISA writes them, rows (M or N) and k to elements, of one instruction:
 * the table of "Canonical Layouts" with T, SBO and LBO filled in.
 */
function canonicalLayouts(
  { swizzle, major, leadingByteOffset, strideByteOffset }: MatrixDescriptor,
  bytes: number,
): { readonly row: Layout; readonly k: Layout } {
  const t = 16 / bytes;
  const [sbo, lbo] = [strideByteOffset / bytes, leadingByteOffset / bytes];
  const s = 2 ** swizzleBits[swizzle];
  if (major === 'k')
    return swizzle === 'none'
      ? { row: { shape: [8, 64], stride: [t, sbo] }, k: { shape: [t, 64], stride: [1, lbo] } }
      : { row: { shape: [8, 64], stride: [s * t, sbo] }, k: { shape: [t, 64], stride: [1, t] } };
  return swizzle === 'none'
    ? { row: { shape: [t, 1, 64], stride: [1, t, sbo] }, k: { shape: [8, 64], stride: [t, lbo] } }
    : {
        row: { shape: [t, s, 64], stride: [1, t, lbo] },
        k: { shape: [8, 64], stride: [s * t, sbo] },
      };
}

/** The byte at which the canonical layout puts an element. */
export function canonicalAddress(
  descriptor: MatrixDescriptor,
  bytes: number,
  row: number,
  k: number,
): number {
  const layouts = canonicalLayouts(descriptor, bytes);
  const elements = offsetOf(layouts.row, row) + offsetOf(layouts.k, k);
  return swizzleBitwise(descriptor.swizzle, descriptor.address + elements * bytes);
}

/** A descriptor of a densely packed operand at this address. */
export function denseDescriptor(
  swizzle: SwizzleMode,
  major: Major,
  address: number,
  k: number,
  bytes: number,
): MatrixDescriptor {
  const group = 8 * 16 * 2 ** swizzleBits[swizzle];
  const place = { address, swizzle, major };
  if (major === 'k')
    return swizzle === 'none'
      ? { ...place, leadingByteOffset: 128, strideByteOffset: (128 * k * bytes) / 16 }
      : { ...place, leadingByteOffset: 16, strideByteOffset: group };
  return swizzle === 'none'
    ? { ...place, leadingByteOffset: 128, strideByteOffset: 16 * k }
    : { ...place, leadingByteOffset: (group * k) / 8, strideByteOffset: group };
}

/** Writes a matrix [rows][k] of patterns of 8, 16 or 32 bits where the canonical layout puts it. */
export function placeMatrix(
  shared: SharedMemory,
  descriptor: MatrixDescriptor,
  k: number,
  patterns: PatternArray,
): void {
  const bytes = patterns.BYTES_PER_ELEMENT;
  patterns.forEach((pattern, i) => {
    const address = canonicalAddress(descriptor, bytes, Math.floor(i / k), i % k);
    if (bytes === 4) shared.store.words[address / 4] = pattern;
    else if (bytes === 2) shared.halves[address / 2] = pattern;
    else shared.store.bytes[address] = pattern;
  });
}
