import { encode, formats } from '../../../../formats/index.js';
import type { LaneInstruction } from '../../../../isa/index.js';
import { type FamilyFacts, wordRow } from '../row.js';
import { conversionFacts } from './pair-formats.js';

const facts: FamilyFacts = { ...conversionFacts, laneOperations: 2 };
const fromNumbers: FamilyFacts = {
  ...facts,
  source: `${facts.source}; what __nv_cvt_float_to_e8m0 of CUDA 13 says of signs and limits`,
};

const pair = (high: number, low: number, bits: 8 | 16): number => (high * 2 ** bits + low) >>> 0;

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

const toExponents = ['rz', 'rp'].flatMap((mode) =>
  ['', '.satfinite'].flatMap((satfinite) => {
    const one = (bits: number): number => exponentOf(bits, mode === 'rp', satfinite !== '');
    const name = `cvt.${mode}${satfinite}.ue8m0x2`;
    return [
      wordRow(`${name}.f32`, 16, [32, 32], (a, b) => pair(one(a), one(b), 8), fromNumbers),
      wordRow(
        `${name}.bf16x2`,
        16,
        [32],
        (word) => pair(one(word & 0xffff0000), one(word << 16), 8),
        fromNumbers,
      ),
    ];
  }),
);

/** 2^(bits − 127), all ones NaN, exact in bf16. */
const fromExponents = wordRow(
  'cvt.rn.bf16x2.ue8m0x2',
  32,
  [16],
  (word) => {
    const one = (bits: number): number =>
      encode(formats.bf16, bits === 0xff ? NaN : 2 ** (bits - 127));
    return pair(one(word >>> 8), one(word & 0xff), 16);
  },
  facts,
);

/** `cvt` to and from ue8m0, the exponents of block scales. */
export const exponentConversions: readonly LaneInstruction[] = [...toExponents, fromExponents];
