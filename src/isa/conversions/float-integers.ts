import {
  bitsOfFloat32,
  float32Of,
  roundScaledInteger,
  roundSumToFloat32,
} from '../../arith/index.js';
import type { LaneValue } from '../instruction.js';
import { integerTypeOf } from '../integers/operators.js';
import { type Row, row } from '../row.js';
import { flushed, floatTypes, type FloatType } from '../values/float-type.js';
import {
  integerOf,
  type IntegerType,
  integerTypes,
  registerOf,
  registerValue,
  saturate,
} from '../values/integer-type.js';
import { integerRoundingModifiers, integerRoundings } from '../values/integral.js';
import { roundingModifiers, roundings, saturated } from '../values/rounding.js';
import {
  bothLanes,
  type Emit,
  flushed as flushedCode,
  onWords,
  signed16,
} from '../vectors/index.js';
import {
  f32,
  f32x4,
  f64,
  f64x2,
  i32x4,
  i64,
  i64x2,
  joinLow,
  swapHalves,
  v128,
  type Expression,
} from '../webassembly/index.js';
import { integralCode, nanWords } from './code.js';

const { u8, s8, u16, s16, u32, s32, u64, s64 } = integerTypes;
const integers: readonly IntegerType[] = [s32, u32, u8, s8, u16, s16, u64, s64];

/** bf16 has no conversions with bytes. */
function integersOf(float: FloatType): readonly string[] {
  return integers
    .filter(({ bits }) => float.name !== 'bf16' || bits > 8)
    .map(({ name }) => `.${name}`);
}

/** The integer that NaN becomes: 0, or from fp64 and to 64 bits the highest bit. */
function integerOfNan(to: IntegerType, from: FloatType): bigint {
  return from.name === 'f64' || to.bits === 64 ? 1n << BigInt(to.bits - 1) : 0n;
}

type Width = 16 | 32 | 64;

/** Whether registers of a width hold results: wider registers hold a signed type extended, except from bf16. */
function isHeldIn({ bits, isSigned }: IntegerType, from: FloatType, width: Width): boolean {
  const narrowest = registerOf(bits) as Width;
  return isSigned && from.name !== 'bf16' ? width >= narrowest : width === narrowest;
}

/** An fp32 number as one of 32 bits, on words. */
function toWord(to: IntegerType, irnd: string, ftz: string) {
  const [smallest, largest] = to.isSigned ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];
  const round = integerRoundings[irnd];
  return (bits: number): number => {
    const number = float32Of(bits);
    const value = round(ftz === 'ftz' ? flushed(floatTypes.f32, number) : number);
    return value !== value ? 0 : Math.min(Math.max(value, smallest), largest) >>> 0;
  };
}

function toInteger(from: FloatType, to: IntegerType, irnd: string, ftz: string, width: Width) {
  const round = integerRoundings[irnd];
  return (bits: LaneValue): LaneValue => {
    const value = from.numberOf(bits);
    const kept = round(ftz === 'ftz' ? flushed(from, value) : value);
    const integer =
      kept !== kept
        ? integerOf(to, integerOfNan(to, from))
        : saturate(to, BigInt(Math.min(Math.max(kept, -(2 ** 65)), 2 ** 65)));
    return registerValue(width, integer);
  };
}

const highestBit = i64x2.splat(1n << 63n);

/** Integers, with the highest bit set in lanes of NaN. */
function withNan(values: Expression, isNan: Expression): Expression {
  return v128.or(values, v128.and(isNan, highestBit));
}

/** To integers of 64 bits, lane by lane; with `.ftz` and `.sat` there is no code. */
function toWideCode(from: FloatType, isSigned: boolean, irnd: string): Emit | null {
  const round = integralCode[from.name as 'f32' | 'f64']?.[irnd];
  if (from.name === 'f64') {
    const convert = isSigned ? i64.truncSatF64S : i64.truncSatF64U;
    return (body, { vectors }) => [
      vectors.map((vector) => {
        const rounded = body.keep(round(vector));
        const values = bothLanes((lane) => convert(f64x2.extractLane(rounded, lane)));
        return withNan(values, f64x2.ne(vector, vector));
      }),
    ];
  }
  if (from.name !== 'f32') return null;
  const convert = isSigned ? i64.truncSatF32S : i64.truncSatF32U;
  return (body, { vectors: [a] }) => {
    const rounded = body.keep(round(a));
    const isNan = body.keep(f32x4.ne(a, a));
    const masks = [i64x2.extendLowI32x4S(isNan), i64x2.extendHighI32x4S(isNan)];
    return [
      masks.map((mask, i) =>
        withNan(
          bothLanes((lane) => convert(f32x4.extractLane(rounded, 2 * i + lane))),
          mask,
        ),
      ),
    ];
  };
}

/** To integers of 32 bits. */
function toWordCode(from: FloatType, isSigned: boolean, irnd: string, ftz: string): Emit | null {
  if (from.name === 'f32') {
    const convert = isSigned ? i32x4.truncSatF32x4S : i32x4.truncSatF32x4U;
    return onWords((body, a) =>
      convert(integralCode.f32[irnd](ftz === 'ftz' ? body.keep(flushedCode(a)) : a)),
    );
  }
  if (from.name !== 'f64') return null;
  const convert = isSigned ? i32x4.truncSatF64x2SZero : i32x4.truncSatF64x2UZero;
  const round = integralCode.f64[irnd];
  return (_, { vectors: [a, b] }) => {
    const values = joinLow(convert(round(a)), convert(round(b)));
    const nan = v128.and(nanWords(a, b), i32x4.splat(0x80000000));
    return [[v128.or(values, nan)]];
  };
}

/** The chosen modifiers; each conversion has some of them. */
type Chosen = Readonly<Record<string, string>>;

/** Whether the integer is a word, and `.sat` is not chosen. */
function isWordUnsaturated({ itype, sat }: Chosen): boolean {
  return integerTypeOf(itype).bits === 32 && sat === '';
}

/** The results that registers of a width hold. */
function toIntegers(from: FloatType, width: Width): Row {
  const modifiers = `${from.name === 'f32' ? '{.ftz}' : ''}${from.name === 'bf16' ? '' : '{.sat}'}`;
  const isOfWords = from.name === 'f32' && width === 32;
  return row({
    syntax: `cvt.irnd${modifiers}.itype.${from.name} d, a` as string,
    alternatives: { irnd: integerRoundingModifiers, itype: integersOf(from) },
    operands: { d: `b${width}` },
    except: ({ itype }: Chosen) => !isHeldIn(integerTypeOf(itype), from, width),
    evaluate: ({ itype, irnd, ftz }: Chosen) => {
      const to = integerTypeOf(itype);
      return isOfWords && to.bits === 32
        ? toWord(to, irnd, ftz)
        : toInteger(from, to, irnd, ftz, width);
    },
    emit: ({ itype, irnd, ftz, sat }: Chosen) => {
      const { bits, isSigned } = integerTypeOf(itype);
      if (bits === 64)
        return ftz !== 'ftz' && sat !== 'sat' ? toWideCode(from, isSigned, irnd) : null;
      if (bits !== 32 || width !== 32 || (from.name === 'f64' && sat === 'sat')) return null;
      return toWordCode(from, isSigned, irnd, ftz);
    },
    isOfMachine: isOfWords && isWordUnsaturated,
    meaning: 'decides',
    unit: 'conversion',
    evidence: 'silicon',
    section: 'Data Movement and Conversion Instructions',
  });
}

const significandBits = 53;

/** An integer as an fp64 number that rounds to a shorter format as the integer does. */
function roundedToOdd(integer: bigint): number {
  const magnitude = integer < 0n ? -integer : integer;
  const drop = magnitude.toString(2).length - significandBits;
  if (drop <= 0) return Number(integer);
  const kept = magnitude >> BigInt(drop);
  const odd = kept << BigInt(drop) === magnitude ? kept : kept | 1n;
  return Number(odd) * 2 ** drop * (integer < 0n ? -1 : 1);
}

function fromInteger(from: IntegerType, to: FloatType, rnd: string, sat: string) {
  const rounding = roundings[rnd];
  if (to.name === 'f32' && from.bits === 32 && sat === '') {
    const valueOf = from.isSigned ? (bits: number) => bits | 0 : (bits: number) => bits >>> 0;
    return (bits: number): number => bitsOfFloat32(roundSumToFloat32(valueOf(bits), 0, rounding));
  }
  return (bits: LaneValue): LaneValue => {
    const integer = integerOf(from, bits);
    if (integer === 0n) return to.bitsOf(0);
    if (to.name === 'f64') {
      const value = roundScaledInteger(integer, 0, rounding);
      return to.bitsOf(sat === 'sat' ? saturated(value) : value);
    }
    const result = to.bitsOf(roundedToOdd(integer), { rounding });
    return sat === 'sat' ? to.bitsOf(saturated(to.numberOf(result))) : result;
  };
}

const zero = i32x4.splat(0);

/** From integers of 64 bits, lane by lane. */
function fromWideCode(to: FloatType, isSigned: boolean): Emit | null {
  if (to.name === 'f64') {
    const convert = isSigned ? f64.convertI64S : f64.convertI64U;
    return (_, { vectors }) => [
      vectors.map((vector) =>
        [0, 1].reduce<Expression>(
          (result, lane) =>
            f64x2.replaceLane(result, lane, convert(i64x2.extractLane(vector, lane))),
          zero,
        ),
      ),
    ];
  }
  if (to.name !== 'f32') return null;
  const convert = isSigned ? f32.convertI64S : f32.convertI64U;
  return (_, { vectors }) => [
    [
      [0, 1, 2, 3].reduce<Expression>(
        (result, lane) =>
          f32x4.replaceLane(result, lane, convert(i64x2.extractLane(vectors[lane >> 1], lane & 1))),
        zero,
      ),
    ],
  ];
}

/** To nearest even alone, and not from bytes. */
function fromIntegerCode({ bits, isSigned }: IntegerType, to: FloatType): Emit | null {
  if (bits === 64) return fromWideCode(to, isSigned);
  if (to.name === 'f64' && bits === 32) {
    const convert = isSigned ? f64x2.convertLowI32x4S : f64x2.convertLowI32x4U;
    return (_, { vectors: [a] }) => [[convert(a), convert(swapHalves(a))]];
  }
  if (to.name !== 'f32' || bits < 16) return null;
  if (bits === 16) return onWords((_, a) => f32x4.convertI32x4S(isSigned ? signed16(a) : a));
  return onWords((_, a) => (isSigned ? f32x4.convertI32x4S : f32x4.convertI32x4U)(a));
}

function fromIntegers(to: FloatType): Row {
  return row({
    syntax: `cvt.rnd${to.name === 'bf16' ? '' : '{.sat}'}.${to.name}.itype d, a` as string,
    alternatives: { rnd: roundingModifiers, itype: integersOf(to) },
    evaluate: ({ itype, rnd, sat = '' }: Chosen) => fromInteger(integerTypeOf(itype), to, rnd, sat),
    emit: ({ itype, rnd, sat }: Chosen) =>
      rnd === 'rn' && sat !== 'sat' ? fromIntegerCode(integerTypeOf(itype), to) : null,
    isOfMachine: to.name === 'f32' && isWordUnsaturated,
    meaning: 'is',
    unit: 'conversion',
    evidence: 'silicon',
    section: 'Data Movement and Conversion Instructions',
  });
}

/**
 * `cvt` between floating-point numbers and integers. To an integer: rounded, then clamped to the type's range, with or
 * without `.sat`. To a floating-point number: rounded once, with IEEE overflow.
 */
export const floatIntegerConversionRows: readonly Row[] = Object.values(floatTypes)
  .sort((a, b) => Number(b.name === 'f32') - Number(a.name === 'f32'))
  .flatMap((float) => [
    ...([16, 32, 64] as const).map((width) => toIntegers(float, width)),
    fromIntegers(float),
  ]);
