import { decode, encode, formats, type RoundingOptions } from '../../formats/index.js';
import { decodeOperand, operandFormats } from '../../hardware/index.js';

/** Facts about all conversions of numbers that are stored in pairs. */
export const pairFacts = {
  meaning: 'is',
  unit: 'conversion',
  section: 'Data Movement and Conversion Instructions',
} as const;

/** Two or more numbers in a word, the first one highest. */
export function joined(high: number, low: number, bits: 4 | 8 | 16): number {
  return (high * 2 ** bits + low) >>> 0;
}

/** The encoding of numbers of a format that is stored in pairs. */
export interface PairFormat {
  readonly name: string;
  /** Bits of one number in the pair. */
  readonly bits: 4 | 8 | 16;
  readonly encode: (value: number, options: RoundingOptions) => number;
  readonly decode: (bits: number) => number;
}

function pairFormat(
  name: string,
  bits: 4 | 8 | 16,
  format: 'fp16' | 'bf16' | 'e4m3' | 'e5m2' | 'e2m1',
): PairFormat {
  return {
    name,
    bits,
    encode: (value, options) => encode(formats[format], value, options),
    decode: (pattern) => decode(formats[format], pattern),
  };
}

/** The magnitudes of a format of 6 bits, ascending and exact. */
function magnitudes(name: 'e2m3' | 'e3m2'): readonly number[] {
  return Array.from({ length: 32 }, (_, bits) => {
    const { significand, exponent } = decodeOperand(operandFormats[name], bits);
    return significand * 2 ** exponent;
  });
}

/**
 * A format of 6 bits in a byte: rounded to nearest even, the largest number beyond it, the positive largest for NaN.
 */
function sixBits(name: 'e2m3' | 'e3m2'): PairFormat {
  const values = magnitudes(name);
  const largest = values.length - 1;
  const nearest = (magnitude: number): number => {
    if (!(magnitude < values[largest])) return largest;
    const above = values.findIndex((value) => value > magnitude);
    const middle = (values[above - 1] + values[above]) / 2;
    if (magnitude === middle) return above % 2 === 0 ? above : above - 1;
    return magnitude < middle ? above - 1 : above;
  };
  return {
    name: `${name}x2`,
    bits: 8,
    encode: (value) => {
      const isNegative = value < 0 || Object.is(value, -0);
      return nearest(Math.abs(value)) | (isNegative ? 0x20 : 0);
    },
    decode: (pattern) => (pattern & 0x20 ? -1 : 1) * values[pattern & 0x1f],
  };
}

/** The formats of 16 bits. */
export const halves = [pairFormat('f16x2', 16, 'fp16'), pairFormat('bf16x2', 16, 'bf16')];
/** The formats of 8 bits and fewer; those of 6 bits lie in bytes. */
export const shortFormats = [
  pairFormat('e4m3x2', 8, 'e4m3'),
  pairFormat('e5m2x2', 8, 'e5m2'),
  pairFormat('e2m1x2', 4, 'e2m1'),
  sixBits('e2m3'),
  sixBits('e3m2'),
];
