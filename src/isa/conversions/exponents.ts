import { encode, formats } from '../../formats/index.js';
import { type Row, row } from '../row.js';
import { joined, pairFacts } from './pair-formats.js';

/**
 * The exponent field that scales of blocks have: that of the power of two next to the number's magnitude, toward zero or
 * away from it; at least 0, which is 2^-127. Numbers beyond 2^127 give NaN, 255, or with `.satfinite` 254; NaN stays.
 */
function exponentOf(bits: number, isUp: boolean, saturates: boolean): number {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0xff;
  const isFinite = magnitude < 0x7f800000;
  const roundsUp = isUp && isFinite && (magnitude & 0x7fffff) !== 0 && magnitude > 0x00400000;
  const field = (magnitude >>> 23) + (roundsUp ? 1 : 0);
  return saturates ? Math.min(field, 0xfe) : field;
}

const common = { ...pairFacts, laneOperations: 2, evidence: 'isa' } as const;
const fromNumbers = {
  ...common,
  alternatives: { mode: ['.rz', '.rp'] },
  also: 'what __nv_cvt_float_to_e8m0 of CUDA 13 says of signs and limits',
} as const;

/** `cvt` to and from ue8m0, the exponents of block scales. */
export const exponentConversionRows: readonly Row[] = [
  row({
    ...fromNumbers,
    syntax: 'cvt.mode{.satfinite}.ue8m0x2.f32 d, a, b',
    evaluate: ({ mode, satfinite }) => {
      const one = (bits: number): number => exponentOf(bits, mode === 'rp', satfinite !== '');
      return (a: number, b: number) => joined(one(a), one(b), 8);
    },
  }),
  row({
    ...fromNumbers,
    syntax: 'cvt.mode{.satfinite}.ue8m0x2.bf16x2 d, a',
    evaluate: ({ mode, satfinite }) => {
      const one = (bits: number): number => exponentOf(bits, mode === 'rp', satfinite !== '');
      return (word: number) => joined(one(word & 0xffff0000), one(word << 16), 8);
    },
  }),
  // 2^(bits − 127), all ones NaN, exact in bf16.
  row({
    ...common,
    syntax: 'cvt.rn.bf16x2.ue8m0x2 d, a',
    evaluate: () => {
      const one = (bits: number): number =>
        encode(formats.bf16, bits === 0xff ? NaN : 2 ** (bits - 127));
      return (word: number) => joined(one(word >>> 8), one(word & 0xff), 16);
    },
  }),
];
