import {
  type ConversionName,
  conversions,
  convertPacked,
  convertPair,
  createConversionArray,
  type PackedConversionName,
  type PairConversionName,
  type SingleConversionName,
} from '../../../hardware/index.js';
import { formats, type RoundingMode } from '../../../formats/index.js';
import { arrayLoop, evaluatingLoop, flushedFloat32 } from '../../../isa/index.js';
import type { WordInstruction } from './instruction.js';
import { bitsOfFloat32, float32Of, roundSumToFloat32 } from '../../../arith/index.js';

/** Without and with `.ftz`. */
const flushings: Readonly<Record<string, boolean>> = { '': false, '.ftz': true };

const names = Object.keys(conversions) as ConversionName[];
const isPair = (name: ConversionName): name is PairConversionName => name.endsWith('x2.f32');
const isSingle = (name: ConversionName): name is SingleConversionName =>
  name.startsWith('cvt.f32.');

/** Mask of the bits of a register that a source of the instruction fills. */
function sourceMask(name: PackedConversionName | SingleConversionName): number {
  const elements = isSingle(name) ? 1 : 2;
  return 2 ** (elements * formats[conversions[name].source].storageBits) - 1;
}

function pairInstruction(name: PairConversionName): WordInstruction {
  const evaluate = (a: number, b: number): number => convertPair(name, a, b);
  const { storageBits } = formats[conversions[name].destination];
  return {
    name,
    unit: 'conversion',
    operands: 2,
    laneOperations: 2,
    width: 1,
    evaluate,
    loop: arrayLoop(() => createConversionArray(name), storageBits, evaluatingLoop(evaluate)),
  };
}

/** The conversion of one operand, as `cvt.rn.bf16.f32`: a lane of the conversion of two. */
function oneOperandInstruction(pair: PairConversionName): WordInstruction {
  const { evaluate } = conversions[pair];
  const { storageBits } = formats[conversions[pair].destination];
  return {
    name: pair.replace('x2.', '.'),
    unit: 'conversion',
    operands: 1,
    laneOperations: 1,
    width: 1,
    evaluate,
    loop: arrayLoop(() => createConversionArray(pair), storageBits, evaluatingLoop(evaluate)),
  };
}

function unaryInstruction(name: PackedConversionName | SingleConversionName): WordInstruction {
  const mask = sourceMask(name);
  const evaluate = isSingle(name)
    ? (a: number) => conversions[name].evaluate((a & mask) >>> 0)
    : (a: number) => convertPacked(name, (a & mask) >>> 0);
  return {
    name,
    unit: 'conversion',
    operands: 1,
    laneOperations: isSingle(name) ? 1 : 2,
    width: 1,
    evaluate,
    loop: evaluatingLoop(evaluate),
  };
}

/**
 * The conversions between floating-point formats that src/hardware models, bit for bit those of an
 * H200: rounding as the mnemonic says, subnormals kept. `cvt….f32` of two operands puts the first
 * into the high half. A 16-bit result or source is the low half of its register. PTX has fp8 in pairs
 * only; bf16 and fp16 also one by one.
 */
export const conversionInstructions: readonly WordInstruction[] = names.flatMap((name) => {
  if (!isPair(name)) return [unaryInstruction(name)];
  const { storageBits } = formats[conversions[name].destination];
  return storageBits === 16
    ? [pairInstruction(name), oneOperandInstruction(name)]
    : [pairInstruction(name)];
});

/** The magnitude from which on every fp32 number is an integer. */
const integersOnly = 2 ** 23;
/** An fp64 number whose ulp is 1, so that adding it rounds to an integer, ties to even. */
const toInteger = 2 ** 52;

function roundToEvenInteger(value: number): number {
  if (!(Math.abs(value) < integersOnly)) return value;
  return value < 0 || Object.is(value, -0)
    ? -(-value + toInteger - toInteger)
    : value + toInteger - toInteger;
}

/** PTX's modifiers for rounding to an integer; zeros keep the sign of their operand. */
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

/** The 32-bit integer types: their range, and the number that a register's bits represent. */
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
      return toIntegral(flushToZero ? flushedFloat32(value) : value);
    };
    return [
      ...Object.entries(integerTypes).map(([type, range]) =>
        conversion(`cvt${modifier}${ftz}.${type}.f32`, (a) => saturated(integral(a), range)),
      ),
      conversion(`cvt${modifier}${ftz}.f32.f32`, (a) => bitsOfFloat32(integral(a))),
    ];
  }),
);

const fromIntegers = Object.entries(floatRoundings).flatMap(([modifier, rounding]) =>
  Object.entries(integerTypes).map(([type, { valueOf }]) =>
    conversion(`cvt${modifier}.f32.${type}`, (a) =>
      bitsOfFloat32(roundSumToFloat32(valueOf(a), 0, rounding)),
    ),
  ),
);

/**
 * The conversions between fp32 and 32-bit integers, and those of an fp32 number to an integral one.
 * To an integer: rounded by the modifier, then cut to the type's range; NaN gives 0. To fp32:
 * rounded once. To an integral number: the sign of a zero is kept, NaN gives 0x7fffffff. `.ftz`
 * takes subnormal operands as zeros. Source: PTX ISA, instruction `cvt`.
 */
export const integerConversionInstructions: readonly WordInstruction[] = [
  ...toIntegers,
  ...fromIntegers,
];
