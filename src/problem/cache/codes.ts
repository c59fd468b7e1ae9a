import { decode, formats, round, type FormatName } from '../../formats/index.js';

/** The codes that caches store: numbers, and of factors the exponents of MX (`e8m0`). */
export const codeNames = [
  'fp32',
  'bf16',
  'fp16',
  'e4m3',
  'e5m2',
  'e2m1',
  'int8',
  'e4m3fnuz',
  'e8m0',
] as const;
/** One of {@link codeNames}. */
export type CodeName = (typeof codeNames)[number];

/** The rounding of a number to a code. */
export interface CodeRounding {
  /** Ties go to the even code, or away from zero (of whole numbers alone); or digits are cut off. */
  readonly mode: 'nearest-even' | 'nearest-away' | 'toward-zero';
  /** Beyond the largest number: that number, or what the format has there (infinity, NaN; a whole number wraps around). */
  readonly overflow: 'saturate' | 'special';
}

/** To nearest, saturating: what conversions to short formats do on a GPU. */
export const usualRounding: CodeRounding = { mode: 'nearest-even', overflow: 'saturate' };

/** A code as data: its width, its numbers, and the way from one to the other. */
export interface Code {
  readonly name: CodeName;
  readonly bits: 4 | 8 | 16 | 32;
  /** The largest number. */
  readonly maximum: number;
  /** The exponent of the largest number. */
  readonly maxExponent: number;
  /** Digits of a number; of a whole number those of the largest. */
  readonly precision: number;
  /** The number of a code; NaN for none. */
  readonly decode: (code: number) => number;
  /** The number that a number becomes. */
  readonly round: (x: number, rounding: CodeRounding) => number;
}

/** Reads the numbers of a format; those of a byte from a table. */
function decoder(name: Extract<FormatName, CodeName>): Code['decode'] {
  const format = formats[name];
  if (format.storageBits > 8) {
    const words = new Uint32Array(1);
    const float = new Float32Array(words.buffer);
    if (name === 'fp16') return (code) => decode(format, code);
    return (code) => {
      words[0] = name === 'bf16' ? code << 16 : code;
      return float[0];
    };
  }
  const table = Float64Array.from({ length: 2 ** format.storageBits }, (_, code) =>
    decode(format, code),
  );
  return (code) => table[code];
}

function floating(name: Extract<FormatName, CodeName>): Code {
  const format = formats[name];
  return {
    name,
    bits: format.storageBits as Code['bits'],
    maximum: format.maxFinite,
    maxExponent: format.maxExponent,
    precision: format.precision,
    decode: decoder(name),
    round: (x, { mode, overflow }) =>
      round(format, x, {
        rounding: mode === 'toward-zero' ? mode : 'nearest-even',
        overflow: overflow === 'saturate' ? overflow : 'overflow',
      }),
  };
}

/** The whole number that a number becomes, ties as the rounding has it. */
function toWhole(x: number, mode: CodeRounding['mode']): number {
  if (mode === 'toward-zero') return Math.trunc(x);
  const below = Math.floor(Math.abs(x));
  const rest = Math.abs(x) - below;
  const isUp = rest > 0.5 || (rest === 0.5 && (mode === 'nearest-away' || below % 2 === 1));
  return Math.sign(x) * (isUp ? below + 1 : below);
}

const int8: Code = {
  name: 'int8',
  bits: 8,
  maximum: 127,
  maxExponent: 6,
  precision: 7,
  decode: (code) => (code << 24) >> 24,
  round: (x, { mode, overflow }) => {
    const whole = toWhole(x, mode);
    if (overflow === 'special') return ((whole & 0xff) << 24) >> 24;
    return Math.min(127, Math.max(-128, whole));
  },
};

/**
 * AMD's e4m3: the exponents of e4m3 less one, no −0 and one NaN, which has its code. Its numbers are half those of e4m3, and
 * two more at the top.
 */
const e4m3fnuz: Code = {
  name: 'e4m3fnuz',
  bits: 8,
  maximum: 240,
  maxExponent: 7,
  precision: 4,
  decode: (code) => {
    if (code === 0x80) return NaN;
    const size = (code & 0x7f) === 0x7f ? 240 : decode(formats.e4m3, code & 0x7f) / 2;
    return code > 0x80 ? -size : size;
  },
  round: (x, { mode, overflow }) => {
    const size = Math.abs(x);
    // 232 lies in the middle of 224 and 240, of which the first is even.
    const isTop = mode === 'toward-zero' ? size >= 240 : size > 232;
    if (overflow === 'special' && size >= 248) return NaN;
    if (isTop) return Math.sign(x) * 240;
    const rounding = mode === 'toward-zero' ? mode : 'nearest-even';
    return round(formats.e4m3, x * 2, { rounding, overflow: 'saturate' }) / 2;
  },
};

const e8m0: Code = {
  name: 'e8m0',
  bits: 8,
  maximum: 2 ** 127,
  maxExponent: 127,
  precision: 1,
  decode: (code) => (code === 0xff ? NaN : 2 ** (code - 127)),
  round: (x) => {
    if (!(x >= 2 ** -127)) return Number.isNaN(x) ? NaN : 2 ** -127;
    if (x >= 2 ** 127) return 2 ** 127;
    const one = 2 ** Math.floor(Math.log2(x));
    const below = one > x ? one / 2 : one * 2 <= x ? one * 2 : one;
    return x / below >= 1.5 ? below * 2 : below;
  },
};

/** The codes by name. */
export const codes: Readonly<Record<CodeName, Code>> = {
  fp32: floating('fp32'),
  bf16: floating('bf16'),
  fp16: floating('fp16'),
  e4m3: floating('e4m3'),
  e5m2: floating('e5m2'),
  e2m1: floating('e2m1'),
  int8,
  e4m3fnuz,
  e8m0,
};
