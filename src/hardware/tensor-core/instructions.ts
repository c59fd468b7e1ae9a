import { RequestError } from '../../request-error.js';
import type { TensorCoreInstruction } from '../architectures.js';
import type { TensorCoreArithmetic } from './arithmetic.js';
import { decodeOperand, type Operand, type OperandFormatName, operandFormats } from './operand.js';
import { addFloat32 } from '../../arith/index.js';
import { decode, encode, formats } from '../../formats/index.js';
import { fusedDotProduct } from './fused-dot-product.js';

/** The sizes D = A·B + C that an instruction has: A is M × K, B is K × N. */
export interface InstructionShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

const halves: readonly OperandFormatName[] = ['fp16', 'bf16'];
const bytes: readonly OperandFormatName[] = ['e4m3', 'e5m2'];
const belowBytes: readonly OperandFormatName[] = ['e2m3', 'e3m2', 'e2m1'];

/**
 * The K of the dense shapes of the PTX ISA 9.0: table of `mma` (section 9.7.14), of `wgmma.mma_async`
 * (9.7.15) and table 39 of `tcgen05.mma` (9.7.16).
 */
const knownLengths: Readonly<
  Record<
    TensorCoreInstruction,
    readonly (readonly [readonly OperandFormatName[], readonly number[]])[]
  >
> = {
  'mma.sync': [
    [halves, [8, 16]],
    [['tf32'], [4, 8]],
    [bytes, [16, 32]],
    [belowBytes, [32]],
  ],
  wgmma: [
    [halves, [16]],
    [['tf32'], [8]],
    [bytes, [32]],
  ],
  'tcgen05.mma': [
    [halves, [16]],
    [['tf32'], [8]],
    [[...bytes, ...belowBytes], [32]],
  ],
};

/** The K that an instruction has for an operand format, ascending; empty if it does not take it. */
export function instructionLengths(
  instruction: TensorCoreInstruction,
  operand: OperandFormatName,
): readonly number[] {
  return knownLengths[instruction].find(([operands]) => operands.includes(operand))?.[1] ?? [];
}

/** The fused sums that a long dot product becomes. */
export interface Chain {
  /** The K of the instructions. */
  readonly length: number;
  /** Instructions, one after the other in ascending k; the D of each is the C of the next. */
  readonly instructions: number;
  /** Fused sums, likewise; an instruction makes one or more. */
  readonly sums: number;
  /** Products in each fused sum. */
  readonly productsPerSum: number;
}

/**
 * The chain for `inner` products by instructions of length k (default: the longest that there is).
 * Throws a RequestError when the instruction has no such k or `inner` is no multiple of it: a kernel
 * fills up with zeros, which change no sum.
 */
export function instructionChain(
  arithmetic: TensorCoreArithmetic,
  inner: number,
  k: number = longestInstruction(arithmetic),
): Chain {
  const { instruction, operands } = arithmetic;
  const lengths = instructionLengths(instruction, operands[0]);
  if (!lengths.includes(k))
    throw new RequestError(
      `${instruction} of ${operands[0]} has no K of ${k}; take ${lengths.join(' or ')}`,
    );
  if (!(Number.isInteger(inner) && inner >= 0 && inner % k === 0))
    throw new RequestError(
      `${inner} products are no whole number of ${instruction} instructions with K = ${k}; fill up with zeros to a multiple of ${k}`,
    );
  const sequence = instructionSequences[arithmetic.sequence];
  const productsPerSum = sequence.productsPerSum(arithmetic, k);
  return { length: k, instructions: inner / k, sums: inner / productsPerSum, productsPerSum };
}

function longestInstruction({ instruction, operands }: TensorCoreArithmetic): number {
  return Math.max(...instructionLengths(instruction, operands[0]));
}

/** The steps by which one instruction computes one element of D from a row of A, a column of B and one of C. */
interface InstructionSequence {
  /** Products in each of its fused sums, for an instruction of length k. */
  readonly productsPerSum: (arithmetic: TensorCoreArithmetic, k: number) => number;
  readonly decode: (format: OperandFormatName, bits: number) => Operand;
  /** The bit pattern of D from operands as `decode` gives them; `a` and `b` have length k. */
  readonly execute: (
    arithmetic: TensorCoreArithmetic,
    a: readonly Operand[],
    b: readonly Operand[],
    c: number,
  ) => number;
}

/** Fused sums in ascending k: C goes into the first, and each result into the next. */
const chain: InstructionSequence = {
  productsPerSum: (arithmetic, k) => Math.min(k, arithmetic.productsPerSum),
  decode: (format, bits) => decodeOperand(operandFormats[format], bits),
  execute: (arithmetic, a, b, c) => {
    const { productsPerSum } = arithmetic;
    let sum = c;
    for (let k = 0; k < a.length; k += productsPerSum)
      sum = fusedDotProduct(
        arithmetic,
        a.slice(k, k + productsPerSum),
        b.slice(k, k + productsPerSum),
        sum,
      );
    return sum;
  },
};

/**
 * Hopper's `mma.sync` has no fp8 unit: ptxas converts the operands to fp16, which holds them exactly,
 * sums the products of k mod 4 < 2 and onto them the others, and adds C by FADD (fp16: HADD2), rounded
 * to nearest even.
 */
const viaFp16: InstructionSequence = {
  productsPerSum: (_, k) => k / 2,
  decode: (format, bits) => {
    const value = decode(formats[format as 'e4m3' | 'e5m2'], bits);
    return decodeOperand(operandFormats.fp16, encode(formats.fp16, value));
  },
  execute: (arithmetic, a, b, c) => {
    const first = (_: Operand, k: number) => k % 4 < 2;
    const second = (_: Operand, k: number) => k % 4 >= 2;
    const half = fusedDotProduct(arithmetic, a.filter(first), b.filter(first), 0);
    const sum = fusedDotProduct(arithmetic, a.filter(second), b.filter(second), half);
    const format = formats[arithmetic.accumulator];
    // For fp16 the rounding to fp32 on the way is innocuous, since 24 ≥ 2·11 + 2.
    return encode(format, addFloat32(decode(format, c), decode(format, sum)));
  },
};

/** The step sequences that the table's column `sequence` names. */
export const instructionSequences = { chain, 'via-fp16': viaFp16 } as const;
