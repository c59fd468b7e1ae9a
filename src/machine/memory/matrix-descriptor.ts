import { type MemoryViolation, type SwizzleMode, swizzles } from './shared-memory.js';

/**
 * The dimension along which adjacent elements of an operand are adjacent in memory: K, or the other one
 * (M of A, N of B), which the instruction descriptor of tcgen05.mma calls transposed.
 */
export type Major = 'k' | 'mn';

/**
 * A shared memory descriptor of tcgen05.mma and tcgen05.cp, with the major dimension, which hardware
 * takes from the instruction descriptor. Bytes throughout, multiples of 16.
 */
export interface MatrixDescriptor {
  /** Offset of the matrix in the CTA's window. */
  readonly address: number;
  /**
   * Distance from one 16-byte chunk along K to the next if K is major and nothing swizzled; from 8 k to
   * the next 8 if it is not major and nothing swizzled; from one span to the next along M or N if it is
   * not major and swizzled. Without meaning if K is major and the layout swizzled.
   */
  readonly leadingByteOffset: number;
  /**
   * Distance from 8 rows of M or N to the next 8 if K is major; from 8 k to the next 8 if it is not and
   * the layout is swizzled; from one chunk to the next along M or N if it is not and nothing is swizzled.
   */
  readonly strideByteOffset: number;
  readonly swizzle: SwizzleMode;
  readonly major: Major;
}

const fieldBytes = 2 ** 18;

/** The fields of a descriptor that hold byte offsets: their lowest bit in the word. */
const byteFields = [
  ['address', 0],
  ['leadingByteOffset', 16],
  ['strideByteOffset', 32],
] as const;

/** Bits 46 to 48 are the constant 0b001. */
const versionBit = 46n;
const baseOffsetBit = 49n;
const leadingModeBit = 52n;
const swizzleBit = 61n;

/** The error in a descriptor, or null: byte fields that are no multiples of 16 below 2^18. */
export function checkMatrixDescriptor(descriptor: MatrixDescriptor): MemoryViolation | null {
  for (const [name] of byteFields) {
    const value = descriptor[name];
    if (!(Number.isInteger(value / 16) && value >= 0 && value < fieldBytes))
      return {
        kind: 'misaligned',
        message: `${name} of a matrix descriptor is ${value} bytes; a multiple of 16 below ${fieldBytes} is due`,
      };
  }
  return null;
}

/** Result of {@link decodeMatrixDescriptor}. */
export type DecodedDescriptor =
  | { readonly ok: true; readonly descriptor: MatrixDescriptor }
  | { readonly ok: false; readonly violation: MemoryViolation };

/**
 * The descriptor of a 64-bit word, or the violation: a constant that is not 1, a swizzling mode that does
 * not exist, or a feature that is not modelled (128 bytes with atoms of 32, absolute leading addresses, a
 * base offset). Reserved bits are ignored.
 */
export function decodeMatrixDescriptor(word: bigint, major: Major): DecodedDescriptor {
  const bits = (first: bigint, count: bigint): number =>
    Number((word >> first) & ((1n << count) - 1n));
  const problem = (what: string): DecodedDescriptor => ({
    ok: false,
    violation: {
      kind: 'instruction-shape',
      message: `matrix descriptor 0x${word.toString(16)} has ${what}`,
    },
  });
  if (bits(versionBit, 3n) !== 1) return problem(`${bits(versionBit, 3n)} in bits 46 to 48, not 1`);
  if (bits(leadingModeBit, 1n) !== 0)
    return problem('an absolute leading address, which is not modelled');
  const code = bits(swizzleBit, 3n);
  const mode = Object.entries(swizzles).find(([, { descriptorCode }]) => descriptorCode === code);
  if (mode === undefined)
    return problem(
      code === 1
        ? 'swizzling of 128 bytes with atoms of 32, which is not modelled'
        : `swizzling mode ${code}, which does not exist`,
    );
  const swizzle = mode[0] as SwizzleMode;
  // Without swizzling it has no meaning ("valid for all swizzling modes except the no-swizzle mode"); Triton fills it in.
  if (swizzle !== 'none' && bits(baseOffsetBit, 3n) !== 0)
    return problem('a base offset, which is not modelled');
  const [address, leadingByteOffset, strideByteOffset] = byteFields.map(
    ([, bit]) => 16 * bits(BigInt(bit), 14n),
  );
  return {
    ok: true,
    descriptor: { address, leadingByteOffset, strideByteOffset, swizzle, major },
  };
}
