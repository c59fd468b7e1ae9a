import { float32Of } from '../../../../arith/index.js';
import type { RoundingOptions } from '../../../../formats/index.js';
import {
  type IntegerType,
  integerTypes,
  type LaneInstruction,
  roundings,
  saturate,
} from '../../../../isa/index.js';
import { type FamilyFacts, wordRow } from '../row.js';
import {
  conversionFacts,
  halves,
  type PairFormat,
  positive,
  shortFormats,
} from './pair-formats.js';
import { exponentConversions } from './exponent-conversions.js';
import { stochasticConversions } from './stochastic-conversions.js';
import { tf32Conversions } from './tf32-conversions.js';

const pairFacts: FamilyFacts = { ...conversionFacts, laneOperations: 2 };

function joined(high: number, low: number, bits: 4 | 8 | 16): number {
  return (high * 2 ** bits + low) >>> 0;
}

/** Two fp32 numbers to a word of both, with the first operand in the high part. */
function ofFloats(
  format: PairFormat,
  modifiers: string,
  options: RoundingOptions,
  isPositive: boolean,
): LaneInstruction {
  const one = (bits: number): number => {
    const value = float32Of(bits);
    return format.encode(isPositive ? positive(value) : value, options);
  };
  return wordRow(
    `cvt${modifiers}.${format.name}.f32`,
    format.bits === 16 ? 32 : 16,
    [32, 32],
    (high, low) => joined(one(high), one(low), format.bits),
    pairFacts,
  );
}

/** One fp32 number, converted as in the pairs. */
function ofFloat(
  format: PairFormat,
  modifiers: string,
  options: RoundingOptions,
  isPositive: boolean,
): LaneInstruction {
  return wordRow(
    `cvt${modifiers}.${format.name.slice(0, -'x2'.length)}.f32`,
    16,
    [32],
    (bits) => {
      const value = float32Of(bits);
      return format.encode(isPositive ? positive(value) : value, options);
    },
    conversionFacts,
  );
}

const toHalves = halves.flatMap((format) =>
  (['rn', 'rz'] as const).flatMap((mode) =>
    ['', '.relu'].flatMap((relu) =>
      ['', '.satfinite'].flatMap((satfinite) => {
        const options: RoundingOptions = {
          rounding: roundings[mode],
          overflow: satfinite === '' ? 'overflow' : 'saturate',
        };
        const modifiers = `.${mode}${relu}${satfinite}`;
        const single = ofFloat(format, modifiers, options, relu !== '');
        return [ofFloats(format, modifiers, options, relu !== ''), single];
      }),
    ),
  ),
);

const saturating: RoundingOptions = { rounding: 'nearest-even', overflow: 'saturate' };

const toShort = shortFormats.flatMap((format) =>
  ['', '.relu'].map((relu) => ofFloats(format, `.rn.satfinite${relu}`, saturating, relu !== '')),
);

/** Pairs of a short format from and to pairs of f16 and bf16, each half by itself. */
const fromHalves = shortFormats.flatMap((format) =>
  halves.flatMap((half) =>
    ['', '.relu'].map((relu) => {
      const one = (bits: number): number => {
        const value = half.decode(bits);
        return format.encode(relu === '' ? value : positive(value), saturating);
      };
      return wordRow(
        `cvt.rn.satfinite${relu}.${format.name}.${half.name}`,
        16,
        [32],
        (word) => joined(one(word >>> 16), one(word & 0xffff), format.bits),
        pairFacts,
      );
    }),
  ),
);

const fromShort = shortFormats.flatMap((format) =>
  halves.flatMap((half) =>
    ['', '.relu'].map((relu) => {
      const one = (bits: number): number => {
        const value = format.decode(bits);
        return half.encode(relu === '' ? value : positive(value), {});
      };
      const mask = 2 ** format.bits - 1;
      return wordRow(
        `cvt.rn${relu}.${half.name}.${format.name}`,
        32,
        [16],
        (word) => joined(one((word >>> format.bits) & mask), one(word & mask), 16),
        pairFacts,
      );
    }),
  ),
);

const { u8, s8, u16, s16 } = integerTypes;
const packedTypes: readonly (
  IntegerType | { readonly name: string; readonly bits: 2 | 4; readonly isSigned: boolean }
)[] = [
  u8,
  s8,
  { name: 'u4', bits: 4, isSigned: false },
  { name: 's4', bits: 4, isSigned: true },
  { name: 'u2', bits: 2, isSigned: false },
  { name: 's2', bits: 2, isSigned: true },
];

/** An integer clamped to a type's range; its low bits. */
function cut(type: { readonly bits: number; readonly isSigned: boolean }, word: number): number {
  const integer = saturate(type as IntegerType, BigInt(word | 0));
  return Number(BigInt.asUintN(type.bits, integer));
}

/** `cvt.pack`: the two integers in the lowest places; the contents of c move up. */
const packs = [
  ...[u16, s16].map((type) =>
    wordRow(
      `cvt.pack.sat.${type.name}.s32`,
      32,
      [32, 32],
      (a, b) => joined(cut(type, a), cut(type, b), 16),
      conversionFacts,
    ),
  ),
  ...packedTypes.map((type) =>
    wordRow(
      `cvt.pack.sat.${type.name}.s32.b32`,
      32,
      [32, 32, 32],
      (a, b, c) => ((c << (2 * type.bits)) | (cut(type, a) << type.bits) | cut(type, b)) >>> 0,
      conversionFacts,
    ),
  ),
];

/**
 * `cvt` to and from pairs of numbers, to tf32, and `cvt.pack`. In pairs the first operand is the high one. Forms with
 * scales (`.scaled::n2::ue8m0`) are left out.
 */
export const packedConversions: readonly LaneInstruction[] = [
  ...[...toHalves, ...toShort, ...fromHalves, ...fromShort],
  ...exponentConversions,
  ...stochasticConversions,
  ...tf32Conversions,
  ...packs,
];
