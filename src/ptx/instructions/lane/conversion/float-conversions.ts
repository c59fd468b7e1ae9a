import type { RoundingOptions } from '../../../../formats/index.js';
import { roundSumToFloat32, roundSumToFloat32FlushingToZero } from '../../../../arith/index.js';
import {
  type FloatType,
  floatTypes,
  flushed,
  type LaneInstruction,
  laneValue,
  type LaneValue,
  roundings,
  saturated,
  signBit,
} from '../../../../isa/index.js';
import { integerRoundings } from './float-integer-conversions.js';
import { type FamilyFacts, row } from '../row.js';

const facts: FamilyFacts = {
  meaning: 'is',
  unit: 'conversion',
  evidence: 'isa',
  source: 'PTX ISA, Data Movement and Conversion Instructions: cvt',
};

const { f16, bf16, f32, f64 } = floatTypes;

/** Exponent and fraction bits of the type, all ones. */
function magnitudeOf(type: FloatType): bigint {
  return signBit(type) - 1n;
}

/** The NaN of a conversion from or to fp64: sign and top of the payload survive, and it is made quiet. */
function passedNan(from: FloatType, to: FloatType, bits: LaneValue): LaneValue {
  const pattern = BigInt(bits);
  const fraction = pattern & ((1n << BigInt(from.fractionBits)) - 1n);
  const shift = BigInt(to.fractionBits - from.fractionBits);
  const payload = shift < 0n ? fraction >> -shift : fraction << shift;
  const quiet = 1n << BigInt(to.fractionBits - 1);
  const exponent = magnitudeOf(to) & ~((1n << BigInt(to.fractionBits)) - 1n);
  const sign = (pattern & signBit(from)) === 0n ? 0n : signBit(to);
  return laneValue(to.width, sign | exponent | quiet | payload);
}

/** A number of one type rounded to another; NaN as the hardware passes it on. */
function converted(
  from: FloatType,
  to: FloatType,
  bits: LaneValue,
  { rounding = 'nearest-even', flushSubnormals = false }: RoundingOptions,
): LaneValue {
  const value = from.numberOf(bits);
  if (value !== value)
    return from === f64 || to === f64 ? passedNan(from, to, bits) : to.bitsOf(value);
  if (to !== f32) return to.bitsOf(value, { rounding });
  if (!Number.isFinite(value)) return f32.bitsOf(value);
  return f32.bitsOf(
    flushSubnormals
      ? roundSumToFloat32FlushingToZero(value, 0, rounding)
      : roundSumToFloat32(value, 0, rounding),
  );
}

function limited(to: FloatType, bits: LaneValue, isSaturating: boolean): LaneValue {
  return isSaturating ? to.bitsOf(saturated(to.numberOf(bits))) : bits;
}

/** A conversion with `.ftz` and `.sat` where the types have them. */
function forms(
  from: FloatType,
  to: FloatType,
  mode: string,
  convert: (bits: LaneValue, isFlushing: boolean) => LaneValue,
): LaneInstruction[] {
  const flushings = from === f32 || to === f32 ? ['', '.ftz'] : [''];
  const saturations = to === bf16 || from === bf16 ? [''] : ['', '.sat'];
  return flushings.flatMap((ftz) =>
    saturations.map((sat) => {
      const evaluate = (bits: LaneValue): LaneValue =>
        limited(to, convert(bits, ftz !== ''), sat !== '');
      const operation = { destinations: [to.width], sources: [from.width], evaluate };
      return row(`cvt${mode}${ftz}${sat}.${to.name}.${from.name}`, operation, facts);
    }),
  );
}

/** The operand with subnormal fp32 numbers as zeros, except in conversions to f16; those of other types stay. */
function operand(from: FloatType, to: FloatType, bits: LaneValue): LaneValue {
  if (from !== f32 || to === f16) return bits;
  // The hardware adds here: a NaN becomes the canonical one.
  return from.bitsOf(flushed(from, from.numberOf(bits)));
}

function narrowing(from: FloatType, to: FloatType): LaneInstruction[] {
  return Object.entries(roundings).flatMap(([mode, rounding]) =>
    forms(from, to, `.${mode}`, (bits, isFlushing) =>
      converted(from, to, isFlushing ? operand(from, to, bits) : bits, {
        rounding,
        flushSubnormals: isFlushing,
      }),
    ),
  );
}

function widening(from: FloatType, to: FloatType): LaneInstruction[] {
  return forms(from, to, '', (bits, isFlushing) => {
    // The hardware shifts bf16, which leaves every NaN unchanged.
    if (from === bf16 && to === f32 && !isFlushing) return Number(bits) * 2 ** 16;
    const kept = isFlushing ? operand(from, to, bits) : bits;
    return converted(from, to, kept, { flushSubnormals: isFlushing });
  });
}

function integral(type: FloatType): LaneInstruction[] {
  return Object.entries(integerRoundings).flatMap(([mode, round]) =>
    forms(type, type, `.${mode}`, (bits, isFlushing) => {
      const value = type.numberOf(bits);
      if (value !== value) return converted(type, type, bits, {});
      return type.bitsOf(round(isFlushing ? flushed(type, value) : value));
    }),
  );
}

/**
 * Conversions without a rounding modifier, which round nothing; without any other modifier the bits stay, except those
 * of f16.
 */
function same(type: FloatType): LaneInstruction[] {
  return forms(type, type, '', (bits, isFlushing) => {
    const value = type.numberOf(bits);
    if (isFlushing) return type.bitsOf(flushed(type, value));
    return type === f16 ? type.bitsOf(value) : bits;
  });
}

const narrowings: readonly (readonly [FloatType, FloatType])[] = [
  [f32, f16],
  [f32, bf16],
  [f64, f16],
  [f64, bf16],
  [f64, f32],
  [bf16, f16],
  [f16, bf16],
];

const widenings: readonly (readonly [FloatType, FloatType])[] = [
  [f16, f32],
  [bf16, f32],
  [f16, f64],
  [bf16, f64],
  [f32, f64],
];

/**
 * `cvt` of one number between f16, bf16, f32 and f64, and to integral numbers. `.ftz` affects only fp32 operands
 * and results.
 */
export function floatConversions(): LaneInstruction[] {
  return [
    ...narrowings.flatMap(([from, to]) => narrowing(from, to)),
    ...widenings.flatMap(([from, to]) => widening(from, to)),
    ...[f16, bf16, f32, f64].flatMap(integral),
    ...[f16, f32, f64].flatMap(same),
  ];
}
