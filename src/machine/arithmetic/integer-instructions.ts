import type { ArithmeticUnit, WordInstruction } from './instruction.js';
import { addIntegersLoop } from './integer-loops.js';
import { evaluatingLoop, type RunLoop } from './run.js';

/** An instruction on 32-bit integers; what it computes is taken modulo 2^32. */
interface IntegerRow {
  readonly name: string;
  readonly unit: ArithmeticUnit;
  readonly operands: 1 | 2 | 3;
  readonly compute: (a: number, b: number, c: number) => number;
  readonly loop?: RunLoop;
}

/** The high 32 bits of a product of integers of up to 32 bits, signed as the operands are. */
function highProduct(a: number, b: number): number {
  return Number(BigInt.asUintN(32, (BigInt(a) * BigInt(b)) >> 32n));
}

const unary = { unit: 'alu', operands: 1 } as const;
const binary = { unit: 'alu', operands: 2 } as const;
const product = { unit: 'fma', operands: 2 } as const;
const productAndSum = { unit: 'fma', operands: 3 } as const;

/** Sums and low products have the same bits whatever the sign. */
const eitherSign: readonly IntegerRow[] = ['s32', 'u32'].flatMap((type): IntegerRow[] => [
  { name: `add.${type}`, ...binary, compute: (a, b) => a + b, loop: addIntegersLoop },
  { name: `sub.${type}`, ...binary, compute: (a, b) => a - b },
  { name: `mul.lo.${type}`, ...product, compute: Math.imul },
  { name: `mad.lo.${type}`, ...productAndSum, compute: (a, b, c) => Math.imul(a, b) + c },
]);

const unsigned: readonly IntegerRow[] = [
  { name: 'mul.hi.u32', ...product, compute: highProduct },
  { name: 'mad.hi.u32', ...productAndSum, compute: (a, b, c) => highProduct(a, b) + c },
  { name: 'min.u32', ...binary, compute: (a, b) => Math.min(a, b) },
  { name: 'max.u32', ...binary, compute: (a, b) => Math.max(a, b) },
];

const signed: readonly IntegerRow[] = [
  { name: 'mul.hi.s32', ...product, compute: (a, b) => highProduct(a | 0, b | 0) },
  { name: 'mad.hi.s32', ...productAndSum, compute: (a, b, c) => highProduct(a | 0, b | 0) + c },
  { name: 'min.s32', ...binary, compute: (a, b) => Math.min(a | 0, b | 0) },
  { name: 'max.s32', ...binary, compute: (a, b) => Math.max(a | 0, b | 0) },
  { name: 'neg.s32', ...unary, compute: (a) => -a },
  { name: 'abs.s32', ...unary, compute: (a) => Math.abs(a | 0) },
];

/**
 * Arithmetic on 32-bit integers, which wraps around; −2^31 is its own `neg` and `abs`. `mul.lo` and
 * `mul.hi` are the low and the high 32 bits of the 64-bit product. Source: PTX ISA, "Integer
 * Arithmetic Instructions".
 */
export const integerInstructions: readonly WordInstruction[] = [
  ...eitherSign,
  ...unsigned,
  ...signed,
].map(({ compute, loop, ...facts }): WordInstruction => {
  const evaluate = (a: number, b: number, c: number): number => compute(a, b, c) >>> 0;
  return {
    ...facts,
    laneOperations: 1,
    width: 1,
    evaluate,
    loop: loop ?? evaluatingLoop(evaluate),
  };
});
