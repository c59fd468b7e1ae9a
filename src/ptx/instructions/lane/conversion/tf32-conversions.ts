import { float32Of } from '../../../../arith/index.js';
import { encode, formats } from '../../../../formats/index.js';
import { type LaneInstruction, roundings } from '../../../../isa/index.js';
import { wordRow } from '../row.js';
import { conversionFacts, positive } from './pair-formats.js';

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
export const tf32Conversions: readonly LaneInstruction[] = [
  ...['', '.satfinite'].map((satfinite) =>
    wordRow(`cvt.rna${satfinite}.tf32.f32`, 32, [32], (bits) => tf32Away(bits, satfinite !== ''), {
      ...conversionFacts,
      source: `${conversionFacts.source}; what ptxas 12.8 issues for sm_90, which cuts NaN too`,
    }),
  ),
  ...(['rn', 'rz'] as const).flatMap((mode) =>
    ['', '.relu'].flatMap((relu) =>
      ['', '.satfinite'].map((satfinite) =>
        wordRow(
          `cvt.${mode}${relu}${satfinite}.tf32.f32`,
          32,
          [32],
          (bits) => {
            const value = float32Of(bits);
            const overflow = satfinite === '' ? 'overflow' : 'saturate';
            return encode(formats.tf32, relu === '' ? value : positive(value), {
              rounding: roundings[mode],
              overflow,
            });
          },
          conversionFacts,
        ),
      ),
    ),
  ),
];
