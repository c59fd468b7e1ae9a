import { roundScaledInteger } from '../../../../arith/index.js';
import {
  type FloatType,
  floatTypes,
  flushed,
  integerOf,
  type IntegerType,
  integerTypes,
  type LaneInstruction,
  type LaneValue,
  registerOf,
  type RegisterWidth,
  registerValue,
  roundings,
  saturate,
  saturated,
} from '../../../../isa/index.js';
import { type FamilyFacts, row } from '../row.js';

const facts: FamilyFacts = {
  meaning: 'is',
  unit: 'conversion',
  evidence: 'isa',
  source: 'PTX ISA, Data Movement and Conversion Instructions: cvt',
};

const { u8, s8, u16, s16, u32, s32, u64, s64 } = integerTypes;
const integers: readonly IntegerType[] = [u8, s8, u16, s16, u32, s32, u64, s64];

/** The registers that hold a type: wider registers hold a signed type extended. */
function registersOf({ bits, isSigned }: IntegerType): RegisterWidth[] {
  const narrowest = registerOf(bits);
  if (!isSigned) return [narrowest];
  return ([16, 32, 64] as const).filter((width) => width >= (narrowest as number));
}

/** The magnitude from which every fp64 number is an integer. */
const integersOnly = 2 ** 52;

function toEven(value: number): number {
  if (!(Math.abs(value) < integersOnly)) return value;
  const below = Math.floor(value);
  const rest = value - below;
  const rounded = rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
  return rounded === 0 && (value < 0 || Object.is(value, -0)) ? -0 : rounded;
}

/** PTX's modifiers for rounding to an integer; a zero has the sign of the operand. */
export const integerRoundings: Readonly<Record<string, (value: number) => number>> = {
  rni: toEven,
  rzi: Math.trunc,
  rmi: Math.floor,
  rpi: Math.ceil,
};

/** The integer that NaN becomes: 0, or from fp64 and to 64 bits the highest bit. */
function integerOfNan(to: IntegerType, from: FloatType): bigint {
  return from.name === 'f64' || to.bits === 64 ? 1n << BigInt(to.bits - 1) : 0n;
}

function toIntegers(from: FloatType, to: IntegerType): LaneInstruction[] {
  const isShort = from.name === 'bf16';
  return Object.entries(integerRoundings).flatMap(([mode, integral]) =>
    (from.name === 'f32' ? ['', '.ftz'] : ['']).flatMap((ftz) =>
      (isShort ? [''] : ['', '.sat']).flatMap((sat) =>
        (isShort ? [registerOf(to.bits)] : registersOf(to)).map((width) => {
          const evaluate = (bits: LaneValue): LaneValue => {
            const value = from.numberOf(bits);
            const kept = integral(ftz === '' ? value : flushed(from, value));
            const integer =
              kept !== kept
                ? integerOf(to, integerOfNan(to, from))
                : saturate(to, BigInt(Math.min(Math.max(kept, -(2 ** 65)), 2 ** 65)));
            return registerValue(width, integer);
          };
          const name = `cvt.${mode}${ftz}${sat}.${to.name}.${from.name}`;
          return row(name, { destinations: [width], sources: [from.width], evaluate }, facts);
        }),
      ),
    ),
  );
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

function fromIntegers(from: IntegerType, to: FloatType): LaneInstruction[] {
  return Object.entries(roundings).flatMap(([mode, rounding]) =>
    (to.name === 'bf16' ? [''] : ['', '.sat']).map((sat) => {
      const evaluate = (bits: LaneValue): LaneValue => {
        const integer = integerOf(from, bits);
        if (integer === 0n) return to.bitsOf(0);
        if (to.name === 'f64') {
          const value = roundScaledInteger(integer, 0, rounding);
          return to.bitsOf(sat === '' ? value : saturated(value));
        }
        const result = to.bitsOf(roundedToOdd(integer), { rounding });
        return sat === '' ? result : to.bitsOf(saturated(to.numberOf(result)));
      };
      const operation = {
        destinations: [to.width],
        sources: [registerOf(from.bits)],
        evaluate,
      };
      return row(`cvt.${mode}${sat}.${to.name}.${from.name}`, operation, facts);
    }),
  );
}

/**
 * `cvt` between floating-point numbers and integers. To an integer: rounded, then clamped to the type's range, with or
 * without `.sat`; bf16 has no conversions with bytes. To a floating-point number: rounded once, with IEEE overflow.
 */
export function floatIntegerConversions(): LaneInstruction[] {
  return Object.values(floatTypes).flatMap((float) =>
    integers
      .filter(({ bits }) => float.name !== 'bf16' || bits > 8)
      .flatMap((integer) => [...toIntegers(float, integer), ...fromIntegers(integer, float)]),
  );
}
