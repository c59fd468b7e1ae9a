import { addFloat32 } from '../../arith/index.js';
import { decode, encode, formats } from '../../formats/index.js';
import type { TensorCoreArithmetic } from './arithmetic.js';
import { fusedDotProduct } from './fused-dot-product.js';
import { decodeOperand, type Operand, type OperandFormatName, operandFormats } from './operand.js';

/** How one instruction computes one element of D from a row of A, a column of B and one of C. */
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

/** What the column `sequence` of the table stands for. */
export const instructionSequences = { chain, 'via-fp16': viaFp16 } as const;
