import { float32Of } from '../../arith/index.js';
import { encode, formats } from '../../formats/index.js';
import { type Row, row } from '../row.js';
import { positive, roundings } from '../values/rounding.js';
import { magnitude, onWords } from '../vectors/index.js';
import { i32x4, v128 } from '../webassembly/index.js';
import { pairFacts } from './pair-formats.js';

const tf32Padding = 13;
const tf32Mask = 0xffffe000;
const infinity = 0x7f800000;

/** To nearest, ties away: half a unit is added to finite numbers, and the low bits are cut, also those of NaN. */
function tf32Away(bits: number, isSaturating: boolean): number {
  const isFinite = (bits & 0x7fffffff) < infinity;
  const cut = ((isFinite ? bits + 0x1000 : bits) & tf32Mask) >>> 0;
  const isBeyond = (cut & 0x7fffffff) >= infinity;
  return isSaturating && isBeyond ? cut - 2 ** tf32Padding : cut;
}

/** `cvt` of fp32 to tf32. */
export const tf32ConversionRows: readonly Row[] = [
  row({
    ...pairFacts,
    syntax: 'cvt.rna{.satfinite}.tf32.f32 d, a',
    evaluate:
      ({ satfinite }) =>
      (bits: number) =>
        tf32Away(bits, satfinite !== ''),
    emit: ({ satfinite }) =>
      satfinite === ''
        ? onWords((_, a) => {
            const half = v128.and(
              i32x4.ltS(magnitude(a), i32x4.splat(infinity)),
              i32x4.splat(0x1000),
            );
            return v128.and(i32x4.add(a, half), i32x4.splat(tf32Mask));
          })
        : null,
    evidence: 'silicon',
    also: 'what ptxas 12.8 issues for sm_90, which cuts NaN too',
  }),
  row({
    ...pairFacts,
    syntax: 'cvt.mode{.relu}{.satfinite}.tf32.f32 d, a',
    alternatives: { mode: ['.rn', '.rz'] },
    evaluate: ({ mode, relu, satfinite }) => {
      const overflow = satfinite === '' ? 'overflow' : 'saturate';
      const options = { rounding: roundings[mode], overflow } as const;
      return (bits: number) => {
        const value = float32Of(bits);
        return encode(formats.tf32, relu === '' ? value : positive(value), options);
      };
    },
    evidence: ({ satfinite }) => (satfinite === '' ? 'silicon' : 'isa'),
  }),
];
