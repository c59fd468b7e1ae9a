import { operandFormats } from '../../../src/hardware/index.js';
import type { OperandFormatName } from '../../../src/hardware/index.js';

/** A generator of 32-bit words, xorshift128 (Marsaglia 2003): the same words for the same seed. */
export function wordSource(seed: number): () => number {
  let [x, y, z, w] = [seed ^ 0x6c078965, 362436069, 521288629, 88675123];
  return () => {
    const t = x ^ (x << 11);
    [x, y, z] = [y, z, w];
    w = w ^ (w >>> 19) ^ t ^ (t >>> 8);
    return w >>> 0;
  };
}

/**
 * How the exponent fields of a set of operands lie: the whole range, or a band of this many fields
 * somewhere; in `bits` all bits are random, specials among them.
 */
export type Spread = 'bits' | 'all' | { readonly band: number };

export const spreads: readonly Spread[] = [
  'bits',
  'all',
  { band: 1 },
  { band: 4 },
  { band: 12 },
  { band: 40 },
];

/** Fills `patterns` with random numbers of a format; one in `oneInZeros` is a zero. */
export function fillPatterns(
  format: OperandFormatName | 'fp32',
  patterns: { length: number; [index: number]: number },
  spread: Spread,
  oneInZeros: number,
  word: () => number,
): void {
  const { exponentBits, precision, paddingBits, storageBits } =
    format === 'fp32'
      ? { ...operandFormats.tf32, precision: 24, paddingBits: 0 }
      : operandFormats[format];
  const fields = 2 ** exponentBits - 1;
  const width = spread === 'bits' || spread === 'all' ? fields : Math.min(spread.band, fields);
  const first = word() % (fields - width + 1);
  for (let i = 0; i < patterns.length; i++) {
    const random = word();
    const sign = (random >>> 31) * 2 ** (storageBits - 1);
    if (spread === 'bits') patterns[i] = Math.floor(word() / 2 ** (32 - storageBits));
    else if (random % oneInZeros === 0) patterns[i] = sign;
    else {
      const field = first + ((random >>> 8) % width);
      const fraction = word() % 2 ** (precision - 1);
      patterns[i] = sign + (field * 2 ** (precision - 1) + fraction) * 2 ** paddingBits;
    }
  }
}
