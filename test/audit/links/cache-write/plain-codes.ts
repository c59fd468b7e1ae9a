import { Float16Array } from '@petamoriken/float16';
import type { CodeName } from '../../../../src/problem/index.js';

/** Tiny floating-point formats by their fields: exponent bits, fraction bits, bias, and the codes from which on there is no number. */
const tiny: Readonly<Partial<Record<CodeName, readonly [number, number, number, number]>>> = {
  e4m3: [4, 3, 7, 0x7f],
  e5m2: [5, 2, 15, 0x7c],
  e2m1: [2, 1, 1, 8],
  e4m3fnuz: [4, 3, 8, 0x80],
};

/** The numbers of the codes without sign, in ascending order. */
const tables = new Map<CodeName, number[]>();

function tableOf(code: CodeName): number[] {
  const known = tables.get(code);
  if (known !== undefined) return known;
  const fields = tiny[code];
  if (fields === undefined) throw new Error(code);
  const [, fraction, bias, end] = fields;
  const table = Array.from({ length: end }, (_, magnitude) => {
    const exponent = magnitude >> fraction;
    const rest = (magnitude & ((1 << fraction) - 1)) / (1 << fraction);
    return exponent === 0 ? rest * 2 ** (1 - bias) : (1 + rest) * 2 ** (exponent - bias);
  });
  tables.set(code, table);
  return table;
}

/** The code of the nearest number, ties to the even code, at most the largest; or the one below, of truncation. */
function encodeTiny(code: CodeName, x: number, truncates: boolean): number {
  const table = tableOf(code);
  const sign = code === 'e2m1' ? 8 : 0x80;
  if (Number.isNaN(x)) return code === 'e4m3fnuz' ? 0x80 : 0x7f;
  const size = Math.abs(x);
  let at = table.length - 1;
  while (at > 0 && table[at] > size) at--;
  if (!truncates && at + 1 < table.length) {
    const [below, above] = [size - table[at], table[at + 1] - size];
    if (above < below || (above === below && at % 2 === 1)) at++;
  }
  const isNegative = x < 0 || Object.is(x, -0);
  if (at === 0 && code === 'e4m3fnuz') return 0;
  return isNegative ? at + sign : at;
}

const words = new Uint32Array(1);
const float = new Float32Array(words.buffer);

function encodeBf16(x: number, truncates: boolean): number {
  float[0] = x;
  if (Number.isNaN(x)) return 0x7fff;
  if (truncates) return words[0] >>> 16;
  const half = 0x7fff + ((words[0] >>> 16) & 1);
  return ((words[0] + half) / 65536) & 0xffff;
}

/** The code of a number, rounded as a GPU's saturating conversion rounds it; plain arithmetic, apart from the library's formats. */
export function encodePlain(code: CodeName, x: number, truncates = false): number {
  switch (code) {
    case 'fp32':
      float[0] = x;
      return words[0];
    case 'bf16':
      return encodeBf16(x, truncates);
    case 'fp16': {
      const half = new Float16Array([x]);
      return new Uint16Array(half.buffer)[0];
    }
    case 'int8': {
      const even = (y: number) => {
        const floor = Math.floor(y);
        const rest = y - floor;
        return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
      };
      const whole = truncates ? Math.trunc(x) : even(x);
      return Math.max(-128, Math.min(127, whole)) & 0xff;
    }
    case 'e8m0':
      return Math.max(0, Math.min(254, Math.round(Math.log2(x)) + 127));
    default:
      return encodeTiny(code, x, truncates);
  }
}

/** The number of a code. */
export function decodePlain(code: CodeName, bits: number): number {
  if (code === 'fp32') {
    words[0] = bits;
    return float[0];
  }
  if (code === 'bf16') {
    words[0] = bits << 16;
    return float[0];
  }
  if (code === 'fp16') return new Float16Array(new Uint16Array([bits]).buffer)[0];
  if (code === 'int8') return bits > 127 ? bits - 256 : bits;
  if (code === 'e8m0') return 2 ** (bits - 127);
  const sign = code === 'e2m1' ? 8 : 0x80;
  if (code === 'e4m3fnuz' && bits === 0x80) return NaN;
  const size = tableOf(code)[bits % sign] ?? NaN;
  return bits >= sign ? -size : size;
}

/** Bits of a code. */
export const bitsOf: Readonly<Record<CodeName, number>> = {
  fp32: 32,
  bf16: 16,
  fp16: 16,
  e4m3: 8,
  e5m2: 8,
  e2m1: 4,
  int8: 8,
  e4m3fnuz: 8,
  e8m0: 8,
};
