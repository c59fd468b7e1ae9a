import { roundSumToFloat32 } from '../../arith/index.js';
import type { RoundingMode } from '../../formats/index.js';
import { flushed } from './float32-extremum.js';
import { flushings } from './float32-instructions.js';
import { bitsOf, float32Of } from './float32-word.js';
import type { WordInstruction } from './instruction.js';
import { evaluatingLoop } from './run.js';

/** From this magnitude on every fp32 number is an integer. */
const integersOnly = 2 ** 23;
/** An fp64 number whose ulp is 1, so that adding it rounds to an integer, ties to even. */
const toInteger = 2 ** 52;

function roundToEvenInteger(value: number): number {
  if (!(Math.abs(value) < integersOnly)) return value;
  return value < 0 || Object.is(value, -0)
    ? -(-value + toInteger - toInteger)
    : value + toInteger - toInteger;
}

/** PTX's modifiers for rounding to an integer; zeros keep the sign of what they come from. */
const integerRoundings: Readonly<Record<string, (value: number) => number>> = {
  '.rni': roundToEvenInteger,
  '.rzi': Math.trunc,
  '.rmi': Math.floor,
  '.rpi': Math.ceil,
};

const floatRoundings: Readonly<Record<string, RoundingMode>> = {
  '.rn': 'nearest-even',
  '.rz': 'toward-zero',
  '.rm': 'down',
  '.rp': 'up',
};

/** The 32-bit integer types: their range, and the number that a register's bits stand for. */
const integerTypes = {
  s32: { smallest: -(2 ** 31), largest: 2 ** 31 - 1, valueOf: (bits: number) => bits | 0 },
  u32: { smallest: 0, largest: 2 ** 32 - 1, valueOf: (bits: number) => bits >>> 0 },
} as const;

function conversion(name: string, evaluate: (a: number) => number): WordInstruction {
  return {
    name,
    unit: 'conversion',
    operands: 1,
    laneOperations: 1,
    width: 1,
    evaluate,
    loop: evaluatingLoop(evaluate),
  };
}

/** The bits of the number as an integer, the nearest in range; 0 for NaN. */
function saturated(value: number, { smallest, largest }: { smallest: number; largest: number }) {
  if (value !== value) return 0;
  return Math.min(Math.max(value, smallest), largest) >>> 0;
}

const toIntegers = Object.entries(integerRoundings).flatMap(([modifier, toIntegral]) =>
  Object.entries(flushings).flatMap(([ftz, flushToZero]) => {
    const integral = (bits: number): number => {
      const value = float32Of(bits);
      return toIntegral(flushToZero ? flushed(value) : value);
    };
    return [
      ...Object.entries(integerTypes).map(([type, range]) =>
        conversion(`cvt${modifier}${ftz}.${type}.f32`, (a) => saturated(integral(a), range)),
      ),
      conversion(`cvt${modifier}${ftz}.f32.f32`, (a) => bitsOf(integral(a))),
    ];
  }),
);

const fromIntegers = Object.entries(floatRoundings).flatMap(([modifier, rounding]) =>
  Object.entries(integerTypes).map(([type, { valueOf }]) =>
    conversion(`cvt${modifier}.f32.${type}`, (a) =>
      bitsOf(roundSumToFloat32(valueOf(a), 0, rounding)),
    ),
  ),
);

/**
 * The conversions between fp32 and 32-bit integers, and those of an fp32 number to an integral one.
 * To an integer: rounded as the modifier says, then cut to the type's range; NaN gives 0. To fp32:
 * rounded once. To an integral number: the sign of a zero is kept, NaN gives 0x7fffffff. `.ftz`
 * takes subnormal operands as zeros. Source: PTX ISA, instruction `cvt`.
 */
export const integerConversionInstructions: readonly WordInstruction[] = [
  ...toIntegers,
  ...fromIntegers,
];
