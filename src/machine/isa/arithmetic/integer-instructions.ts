import { evaluatingLoop, isActive, type RunLoop, warpLanes } from '../../../isa/index.js';
import type { ArithmeticUnit, WordInstruction } from './instruction.js';

/** The largest amount that `shl` and `shr` distinguish: they shift by 32 at most. */
const registerBits = 32;

/** a · 2^amount modulo 2^32: PTX's `shl.b32`, which shifts everything out from 32 on. */
export function shiftLeft(a: number, amount: number): number {
  return amount >>> 0 < registerBits ? (a << amount) >>> 0 : 0;
}

/** Integer sums over runs, modulo 2^32. */
const addIntegersLoop: RunLoop = ({ destination, sources: [a, b], count, activeLanes }) => {
  const { words, step } = destination;
  const { words: x, step: aStep } = a;
  const { words: y, step: bStep } = b;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep)
      words[at] = (x[i] + y[j]) | 0;
  }
};

/** `shiftLeft` over runs. */
export const shiftLeftLoop: RunLoop = ({ destination, sources: [a, b], count, activeLanes }) => {
  const { words, step } = destination;
  const { words: x, step: aStep } = a;
  const { words: y, step: bStep } = b;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    let j = b.first + lane * b.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep, j += bStep)
      words[at] = y[j] < registerBits ? x[i] << y[j] : 0;
  }
};

/** Copies over runs. */
export const moveLoop: RunLoop = ({ destination, sources: [a], count, activeLanes }) => {
  const { words, step } = destination;
  const { words: x, step: aStep } = a;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(activeLanes, lane)) continue;
    let at = destination.first + lane * destination.laneStride;
    let i = a.first + lane * a.laneStride;
    for (let n = 0; n < count; n++, at += step, i += aStep) words[at] = x[i];
  }
};

/** An instruction on 32-bit integers; its result is taken modulo 2^32. */
interface IntegerRow {
  readonly name: string;
  readonly unit: ArithmeticUnit;
  readonly operands: 1 | 2 | 3;
  readonly compute: (a: number, b: number, c: number) => number;
  readonly loop?: RunLoop;
}

/** The high 32 bits of a product of integers of up to 32 bits, with the operands' signs. */
function highProduct(a: number, b: number): number {
  return Number(BigInt.asUintN(32, (BigInt(a) * BigInt(b)) >> 32n));
}

const unary = { unit: 'alu', operands: 1 } as const;
const binary = { unit: 'alu', operands: 2 } as const;
const product = { unit: 'fma', operands: 2 } as const;
const productAndSum = { unit: 'fma', operands: 3 } as const;

/** Sums and low products, whose bits do not depend on the signedness. */
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
