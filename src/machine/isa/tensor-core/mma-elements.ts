import { type OperandFormatName, operandFormats } from '../../../hardware/index.js';
import type { BlockScales } from './block-scales.js';

/** The formats of A and B: floating-point formats, and the integers of kind::i8. */
export type MmaFormatName = OperandFormatName | 'u8' | 's8';

/** The format of D; each element takes a word of tensor memory, fp16 its lower half. */
export type MmaAccumulator = 'fp32' | 'fp16' | 's32';

/** Bits of an element's pattern. */
export function patternBits(format: MmaFormatName): number {
  return format === 'u8' || format === 's8' ? 8 : operandFormats[format].storageBits;
}

/** Bytes of a chunk of 16 in shared memory that hold elements; the others are padding. */
export function usedBytes(mma: { readonly scales?: BlockScales }, format: MmaFormatName): number {
  return (16 * Math.min(patternBits(format), memoryBits(mma, format))) / memoryBits(mma, format);
}

/**
 * Bits that an element takes in memory: two elements of 4 bits share a byte for kind::mxf4 and kind::mxf4nvf4; otherwise each
 * has one.
 */
export function memoryBits({ scales }: { readonly scales?: BlockScales }, format: MmaFormatName) {
  return isPacked(scales) ? 4 : Math.max(8, patternBits(format));
}

function isPacked(scales: BlockScales | undefined): boolean {
  return scales !== undefined && scales.kind !== 'mxf8f6f4';
}
