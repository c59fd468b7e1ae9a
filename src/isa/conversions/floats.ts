import {
  bitsOfFloat32,
  float32Of,
  roundSumToFloat32,
  roundSumToFloat32FlushingToZero,
} from '../../arith/index.js';
import type { RoundingOptions } from '../../formats/index.js';
import { conversions } from '../../hardware/index.js';
import type { LaneValue, Meaning } from '../instruction.js';
import { type Row, row } from '../row.js';
import { flushed, type FloatType, floatTypes, laneValue, signBit } from '../values/float-type.js';
import { integerRoundingModifiers, integerRoundings } from '../values/integral.js';
import { roundingModifiers, roundings, saturated } from '../values/rounding.js';
import {
  canonical,
  type Emit,
  flushed as flushedCode,
  onEachVector,
  onWords,
  saturated as saturatedCode,
  shortened,
  widenedFloat16,
} from '../vectors/index.js';
import { floatCode, integralCode, roundedToBf16 } from './code.js';
import { i32x4 } from '../webassembly/index.js';

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

/** The operand with subnormal fp32 numbers as zeros, except in conversions to f16; those of other types stay. */
function operand(from: FloatType, to: FloatType, bits: LaneValue): LaneValue {
  if (from !== f32 || to === f16) return bits;
  // The hardware adds here: a NaN becomes the canonical one.
  return from.bitsOf(flushed(from, from.numberOf(bits)));
}

/** The chosen modifiers; conversions have some of them. */
type Chosen = Readonly<Record<string, string>>;

/** A conversion with `.ftz` and `.sat` where the types have them. */
interface Conversion {
  /** `.rnd`, `.irnd`, or nothing where nothing is rounded. */
  readonly rounding: '' | '.rnd' | '.irnd';
  readonly convert: (bits: LaneValue, isFlushing: boolean, rounding: string) => LaneValue;
  /** The code of forms that have one. */
  readonly emit?: (chosen: Chosen) => Emit | null;
  /** Whether the machine has the form; default none. */
  readonly isOfMachine?: false | ((chosen: Chosen) => boolean);
  readonly meaning?: Meaning;
}

function rowOf(from: FloatType, to: FloatType, conversion: Conversion): Row {
  const { rounding, convert, emit, isOfMachine = false, meaning = 'is' } = conversion;
  const ftz = from === f32 || to === f32 ? '{.ftz}' : '';
  const sat = from === bf16 || to === bf16 ? '' : '{.sat}';
  return row({
    syntax: `cvt${rounding}${ftz}${sat}.${to.name}.${from.name} d, a` as string,
    alternatives: { rnd: roundingModifiers, irnd: integerRoundingModifiers },
    evaluate: (chosen: Chosen) => {
      const isFlushing = chosen.ftz === 'ftz';
      const mode = chosen.rnd ?? chosen.irnd ?? '';
      if (chosen.sat !== 'sat') return (bits: LaneValue) => convert(bits, isFlushing, mode);
      return (bits: LaneValue) =>
        to.bitsOf(saturated(to.numberOf(convert(bits, isFlushing, mode))));
    },
    ...(emit === undefined ? {} : { emit }),
    isOfMachine,
    meaning,
    unit: 'conversion',
    evidence: 'silicon',
    section: 'Data Movement and Conversion Instructions',
  });
}

function isPlain({ ftz, sat }: Chosen): boolean {
  return ftz !== 'ftz' && sat !== 'sat';
}

/** The conversion of pairs by which the hardware rounds fp32 to half precision, of which a single one is a lane. */
function pairName({ rnd, ...others }: Chosen, to: FloatType) {
  if (!isPlain(others) || !(rnd === 'rn' || rnd === 'rz')) return null;
  return `cvt.${rnd}.${to.name as 'f16' | 'bf16'}x2.f32` as const;
}

/** fp32 to half precision: where src/hardware has the conversion, it computes it. */
function toHalf(to: FloatType): Row {
  return rowOf(f32, to, {
    rounding: '.rnd',
    convert: (bits, isFlushing, rnd) => {
      const name = isFlushing ? null : pairName({ rnd }, to);
      if (name !== null) return conversions[name].evaluate(Number(bits));
      const options = { rounding: roundings[rnd], flushSubnormals: isFlushing };
      return converted(f32, to, isFlushing ? operand(f32, to, bits) : bits, options);
    },
    emit: (chosen) => {
      const name = pairName(chosen, to);
      if (name === null) return null;
      return name === 'cvt.rn.bf16x2.f32'
        ? onWords((body, a) => i32x4.shrU(roundedToBf16(body, a), 16))
        : onWords((body, a) => shortened(body, name, a));
    },
    isOfMachine: (chosen) => pairName(chosen, to) !== null,
  });
}

function narrowing(from: FloatType, to: FloatType): Row {
  return rowOf(from, to, {
    rounding: '.rnd',
    convert: (bits, isFlushing, rnd) =>
      converted(from, to, isFlushing ? operand(from, to, bits) : bits, {
        rounding: roundings[rnd],
        flushSubnormals: isFlushing,
      }),
    emit: (chosen) =>
      from === f64 && to === f32 && chosen.rnd === 'rn' && isPlain(chosen)
        ? floatCode.float64ToFloat32
        : null,
  });
}

/** Half precision to fp32. */
function fromHalf(from: FloatType): Row {
  const { evaluate: ofHardware } = conversions[`cvt.f32.${from.name as 'f16' | 'bf16'}`];
  return rowOf(from, f32, {
    rounding: '',
    convert: (bits, isFlushing) =>
      isFlushing
        ? converted(from, f32, bits, { flushSubnormals: true })
        : ofHardware(Number(bits) & 0xffff),
    emit: (chosen) => {
      if (!isPlain(chosen)) return null;
      return from === f16
        ? onWords((body, a) => widenedFloat16(body, a))
        : onWords((_, a) => i32x4.shl(a, 16));
    },
    isOfMachine: isPlain,
  });
}

function widening(from: FloatType): Row {
  return rowOf(from, f64, {
    rounding: '',
    convert: (bits, isFlushing) =>
      converted(from, f64, isFlushing ? operand(from, f64, bits) : bits, {
        flushSubnormals: isFlushing,
      }),
    emit: (chosen) => (from === f32 && isPlain(chosen) ? floatCode.float32ToFloat64 : null),
  });
}

/** To an integral number of the same type. */
function integral(type: FloatType): Row {
  const [numberOf, bitsOf] =
    type === f32
      ? [float32Of as FloatType['numberOf'], bitsOfFloat32]
      : [type.numberOf, type.bitsOf];
  return rowOf(type, type, {
    rounding: '.irnd',
    convert: (bits, isFlushing, irnd) => {
      const value = numberOf(bits);
      if (value !== value) return converted(type, type, bits, {});
      return bitsOf(integerRoundings[irnd](isFlushing ? flushed(type, value) : value));
    },
    emit: ({ irnd, ftz, sat }) => {
      if (sat === 'sat') return null;
      if (type === f32)
        return onWords((body, a) => {
          const kept = ftz === 'ftz' ? body.keep(flushedCode(a)) : a;
          return canonical(body.keep(integralCode.f32[irnd](kept)));
        });
      return type === f64 ? onEachVector((_, a) => floatCode.integralFloat64(irnd, a)) : null;
    },
    isOfMachine: type === f32 && (({ sat }) => sat !== 'sat'),
    meaning: 'decides',
  });
}

/**
 * Conversions without a rounding modifier, which round nothing; without any other modifier the bits stay, except those
 * of f16.
 */
function same(type: FloatType): Row {
  return rowOf(type, type, {
    rounding: '',
    convert: (bits, isFlushing) => {
      const value = type.numberOf(bits);
      if (isFlushing) return type.bitsOf(flushed(type, value));
      return type === f16 ? type.bitsOf(value) : bits;
    },
    emit: ({ ftz, sat }) => {
      if (type !== f32 || ftz === sat || (ftz === 'ftz' && sat === 'sat')) return null;
      return onWords((body, a) =>
        sat === 'sat' ? saturatedCode(body, canonical(a)) : canonical(body.keep(flushedCode(a))),
      );
    },
  });
}

/**
 * `cvt` of one number between f16, bf16, f32 and f64, and to integral numbers. `.ftz` affects only fp32 operands
 * and results.
 */
export const floatConversionRows: readonly Row[] = [
  toHalf(bf16),
  toHalf(f16),
  fromHalf(f16),
  fromHalf(bf16),
  integral(f32),
  narrowing(f64, f16),
  narrowing(f64, bf16),
  narrowing(f64, f32),
  narrowing(bf16, f16),
  narrowing(f16, bf16),
  ...[f16, bf16, f32].map(widening),
  ...[f16, bf16, f64].map(integral),
  ...[f16, f32, f64].map(same),
];
