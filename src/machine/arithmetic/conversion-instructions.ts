import {
  conversions,
  convertPacked,
  convertPair,
  createConversionArray,
  type ConversionName,
  type PackedConversionName,
  type PairConversionName,
  type SingleConversionName,
} from '../../hardware/index.js';
import { formats } from '../../formats/index.js';
import { arrayLoop } from './array-loops.js';
import type { WordInstruction } from './instruction.js';
import { evaluatingLoop } from './run.js';

const names = Object.keys(conversions) as ConversionName[];
const isPair = (name: ConversionName): name is PairConversionName => name.endsWith('x2.f32');
const isSingle = (name: ConversionName): name is SingleConversionName =>
  name.startsWith('cvt.f32.');

/** The bits of a register that a source of the instruction fills. */
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

/** The conversion of one operand, `cvt.rn.bf16.f32`, is a lane of that of two. */
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
