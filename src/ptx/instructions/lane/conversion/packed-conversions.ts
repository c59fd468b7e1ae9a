import { decode, encode, formats, type RoundingOptions } from '../../../../formats/index.js';
import { decodeOperand, operandFormats } from '../../../../hardware/index.js';
import type { LaneInstruction } from '../../lane-instruction.js';
import { float32Of } from '../float-bits.js';
import { roundings } from '../float32-arithmetic.js';
import { saturate, integerTypes, type IntegerType } from '../integer-type.js';
import { type FamilyFacts, wordRow } from '../row.js';

const facts: FamilyFacts = {
  unit: 'conversion',
  evidence: 'isa',
  source: 'PTX ISA, Data Movement and Conversion Instructions: cvt',
};
const pairFacts: FamilyFacts = {
  unit: 'conversion',
  laneOperations: 2,
  evidence: 'isa',
  source: 'PTX ISA, Data Movement and Conversion Instructions: cvt',
};

/** `.relu`: what is negative, and −0, becomes +0; NaN stays. */
function positive(value: number): number {
  return value <= 0 ? 0 : value;
}

/** What encodes the numbers of a format that lies in pairs. */
interface PairFormat {
  readonly name: string;
  /** Of a number in the pair. */
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

/** The magnitudes of a format of 6 bits, ascending, each exactly. */
function magnitudes(name: 'e2m3' | 'e3m2'): readonly number[] {
  return Array.from({ length: 32 }, (_, bits) => {
    const { significand, exponent } = decodeOperand(operandFormats[name], bits);
    return significand * 2 ** exponent;
  });
}

/** A format of 6 bits in a byte: to nearest even, the largest beyond it, NaN the positive largest. */
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

const halves = [pairFormat('f16x2', 16, 'fp16'), pairFormat('bf16x2', 16, 'bf16')];
const [f16x2] = halves;
const short = [
  pairFormat('e4m3x2', 8, 'e4m3'),
  pairFormat('e5m2x2', 8, 'e5m2'),
  pairFormat('e2m1x2', 4, 'e2m1'),
  sixBits('e2m3'),
  sixBits('e3m2'),
];

function joined(high: number, low: number, bits: 4 | 8 | 16): number {
  return (high * 2 ** bits + low) >>> 0;
}

/** Two fp32 numbers to a word of both, the first operand's in the high part. */
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

/** One fp32 number, as the pairs convert each. */
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
    facts,
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

const toShort = short.flatMap((format) =>
  ['', '.relu'].map((relu) => ofFloats(format, `.rn.satfinite${relu}`, saturating, relu !== '')),
);

/** Pairs of a short format from and to pairs of f16, each half by itself. */
const fromHalves = short
  .filter(({ name }) => /^e[45]/.test(name))
  .flatMap((format) =>
    ['', '.relu'].map((relu) => {
      const one = (bits: number): number => {
        const value = f16x2.decode(bits);
        return format.encode(relu === '' ? value : positive(value), saturating);
      };
      return wordRow(
        `cvt.rn.satfinite${relu}.${format.name}.f16x2`,
        16,
        [32],
        (word) => joined(one(word >>> 16), one(word & 0xffff), format.bits),
        pairFacts,
      );
    }),
  );

const fromShort = short.flatMap((format) =>
  ['', '.relu'].map((relu) => {
    const one = (bits: number): number => {
      const value = format.decode(bits);
      return f16x2.encode(relu === '' ? value : positive(value), {});
    };
    const mask = 2 ** format.bits - 1;
    return wordRow(
      `cvt.rn${relu}.f16x2.${format.name}`,
      32,
      [16],
      (word) => joined(one((word >>> format.bits) & mask), one(word & mask), 16),
      pairFacts,
    );
  }),
);

/** 2^(bits − 127), all ones NaN: exponents of block scales, exact in bf16. */
const fromExponents = wordRow(
  'cvt.rn.bf16x2.ue8m0x2',
  32,
  [16],
  (word) => {
    const one = (bits: number): number =>
      encode(formats.bf16, bits === 0xff ? NaN : 2 ** (bits - 127));
    return joined(one(word >>> 8), one(word & 0xff), 16);
  },
  pairFacts,
);

const tf32Padding = 13;
const tf32Mask = 0xffffe000;
const infinity = 0x7f800000;

/** To nearest, ties away: half a unit is added to what is finite, and the low bits are cut, of NaN too. */
function tf32Away(bits: number, isSaturating: boolean): number {
  const isFinite = (bits & 0x7fffffff) < infinity;
  const cut = ((isFinite ? bits + 0x1000 : bits) & tf32Mask) >>> 0;
  const isBeyond = (cut & 0x7fffffff) >= infinity;
  return isSaturating && isBeyond ? cut - 2 ** tf32Padding : cut;
}

const toTf32 = [
  ...['', '.satfinite'].map((satfinite) =>
    wordRow(`cvt.rna${satfinite}.tf32.f32`, 32, [32], (bits) => tf32Away(bits, satfinite !== ''), {
      ...facts,
      source: `${facts.source}; what ptxas 12.8 issues for sm_90, which cuts NaN too`,
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
          facts,
        ),
      ),
    ),
  ),
];

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

/** An integer cut to a type's range, its low bits. */
function cut(type: { readonly bits: number; readonly isSigned: boolean }, word: number): number {
  const integer = saturate(type as IntegerType, BigInt(word | 0));
  return Number(BigInt.asUintN(type.bits, integer));
}

/** `cvt.pack`: the two integers in the lowest places, what c had moves up. */
const packs = [
  ...[u16, s16].map((type) =>
    wordRow(
      `cvt.pack.sat.${type.name}.s32`,
      32,
      [32, 32],
      (a, b) => joined(cut(type, a), cut(type, b), 16),
      facts,
    ),
  ),
  ...packedTypes.map((type) =>
    wordRow(
      `cvt.pack.sat.${type.name}.s32.b32`,
      32,
      [32, 32, 32],
      (a, b, c) => ((c << (2 * type.bits)) | (cut(type, a) << type.bits) | cut(type, b)) >>> 0,
      facts,
    ),
  ),
];

/**
 * `cvt` to and from pairs of numbers, to tf32, and `cvt.pack`. Of the pairs the first operand is the high one. Forms with a
 * random word (`.rs`) and from fp32 to `ue8m0` are left out: how the hardware uses the word and what it makes of negative
 * numbers is not known.
 */
export const packedConversions: readonly LaneInstruction[] = [
  ...[...toHalves, ...toShort, ...fromHalves, ...fromShort, fromExponents],
  ...toTf32,
  ...packs,
];
