import { fusedMultiplyAddFloat64 } from '../../../arith/index.js';
import {
  type Architecture,
  createTensorCoreTile,
  findTensorCoreArithmetic,
  type OperandFormatName,
  type TensorCoreArithmetic,
  tensorCoreProduct,
} from '../../../hardware/index.js';
import type { Slot } from '../slot.js';
import type { WarpRegisters } from '../warp-registers.js';
import {
  createGather,
  type FragmentLayout,
  type FragmentSource,
  gather,
  gatherFloat64,
  layoutOfA,
  layoutOfB,
  layoutOfC,
  type MatrixPatterns,
  scatter,
  scatterFloat64,
} from './mma-fragment.js';

/** The shape of D = A·B + C; N is 8. */
export interface MmaShape {
  readonly m: 8 | 16;
  readonly k: number;
}

/** The registers of an `mma`, each list in PTX's order; null in D stands for a register that is not kept (`_`). */
export interface MmaRegisters {
  readonly d: readonly (Slot | null)[];
  readonly a: readonly FragmentSource[];
  readonly b: readonly FragmentSource[];
  readonly c: readonly FragmentSource[];
}

/** A product of matrices in registers of a warp. */
export interface MmaProduct {
  readonly shape: MmaShape;
  readonly layouts: Readonly<Record<'a' | 'b' | 'c', FragmentLayout>>;
  /** Of A, of B, and of C and D; null where they mean nothing but bits. */
  readonly formats: readonly [a: string, b: string, c: string] | null;
  /** D = A·B + C; D and C have the same number of registers. */
  readonly execute: (registers: WarpRegisters, operands: MmaRegisters) => void;
}

const columns = 8;

/**
 * Takes elements of 4 and 6 bits, one a byte, out of their bytes: those of 6 bits are the low bits, those of 4 the middle ones. It is
 * assumed that the padding counts for nothing. Source: PTX ISA 9.1, `mma`, on `kind::f8f6f4` and `kind::mxf8f6f4`; CUTLASS shifts likewise.
 */
export function unpad(format: string, matrix: MatrixPatterns): void {
  if (format === 'e2m1') for (let i = 0; i < matrix.length; i++) matrix[i] = (matrix[i] >> 2) & 15;
  if (format === 'e2m3' || format === 'e3m2')
    for (let i = 0; i < matrix.length; i++) matrix[i] &= 63;
}

function elementBitsOf(format: OperandFormatName): 8 | 16 | 32 {
  return ({ tf32: 32, bf16: 16, fp16: 16 } as const)[format as 'tf32' | 'bf16' | 'fp16'] ?? 8;
}

/** Executes with tiles in WebAssembly where they exist, otherwise by the definition. */
function floatProduct(
  arithmetic: TensorCoreArithmetic,
  { m, k }: MmaShape,
  aFormat: OperandFormatName,
  bFormat: OperandFormatName,
): MmaProduct {
  const layouts = {
    a: layoutOfA(m, k, elementBitsOf(aFormat)),
    b: layoutOfB(k, elementBitsOf(bFormat)),
    c: layoutOfC(m, arithmetic.accumulator === 'fp32' ? 32 : 16),
  };
  const facts = {
    shape: { m, k },
    layouts,
    formats: [aFormat, bFormat, arithmetic.accumulator],
  } as const;
  if (arithmetic.accumulator === 'fp32' && arithmetic.sequence === 'chain') {
    const shape = { rows: m, columns, inner: k, instructionLength: k };
    const tile = createTensorCoreTile(arithmetic, { ...shape, aFormat, bFormat });
    const gatherA = createGather(layouts.a, tile.a);
    const gatherB = createGather(layouts.b, tile.b);
    const gatherC = createGather(layouts.c, tile.cBits);
    return {
      ...facts,
      execute: (warp, operands) => {
        gatherA(warp, operands.a);
        gatherB(warp, operands.b);
        unpad(aFormat, tile.a);
        unpad(bFormat, tile.b);
        gatherC(warp, operands.c);
        tile.packA();
        tile.packTransposedB();
        tile.multiplyAccumulate();
        scatter(warp, operands.d, layouts.c, tile.cBits);
      },
    };
  }
  const [a, bTransposed, c] = [m * k, columns * k, m * columns].map(
    (size) => new Uint32Array(size),
  );
  return {
    ...facts,
    execute: (warp, operands) => {
      gather(warp, operands.a, layouts.a, a);
      gather(warp, operands.b, layouts.b, bTransposed);
      unpad(aFormat, a);
      unpad(bFormat, bTransposed);
      gather(warp, operands.c, layouts.c, c);
      const shape = { m, n: columns, k, instructionLength: k };
      const d = tensorCoreProduct(arithmetic, { ...shape, a, aFormat, bTransposed, bFormat, c });
      scatter(warp, operands.d, layouts.c, d);
    },
  };
}

/**
 * The product of a format on an architecture, with the arithmetic of `findTensorCoreArithmetic`. Throws a
 * RequestError where that is not modelled.
 */
export function tensorCoreMma(
  architecture: Architecture,
  shape: MmaShape,
  [aFormat, bFormat]: readonly [OperandFormatName, OperandFormatName],
  accumulator: 'fp32' | 'fp16',
): MmaProduct {
  const arithmetic = findTensorCoreArithmetic({
    instruction: 'mma.sync',
    architecture,
    a: aFormat,
    b: bFormat,
    accumulator,
  });
  return floatProduct(arithmetic, shape, aFormat, bFormat);
}

/** fp64: a chain of fused multiply-adds in ascending k, to nearest. */
export function doubleMma({ m, k }: MmaShape): MmaProduct {
  const layouts = { a: layoutOfA(m, k, 64), b: layoutOfB(k, 64), c: layoutOfC(m, 64) };
  const [a, b, c] = [m * k, columns * k, m * columns].map((size) => new Float64Array(size));
  return {
    shape: { m, k },
    layouts,
    formats: ['fp64', 'fp64', 'fp64'],
    execute: (warp, operands) => {
      gatherFloat64(warp, operands.a, layouts.a, a);
      gatherFloat64(warp, operands.b, layouts.b, b);
      gatherFloat64(warp, operands.c, layouts.c, c);
      for (let row = 0; row < m; row++)
        for (let column = 0; column < columns; column++) {
          let sum = c[row * columns + column];
          for (let i = 0; i < k; i++)
            sum = fusedMultiplyAddFloat64(a[row * k + i], b[column * k + i], sum, 'nearest-even');
          c[row * columns + column] = sum;
        }
      scatterFloat64(warp, operands.d, layouts.c, c);
    },
  };
}

/** An integer format of A or B. */
export interface IntegerOperand {
  readonly bits: 1 | 4 | 8;
  readonly isSigned: boolean;
}

/** The rule by which integers are multiplied and added. */
export interface IntegerRule {
  readonly a: IntegerOperand;
  readonly b: IntegerOperand;
  /** The operation that forms the products; elements of one bit have `and` or `xor`. */
  readonly product: 'multiply' | 'and' | 'xor';
  readonly saturates: boolean;
}

function numberOf({ bits, isSigned }: IntegerOperand, pattern: number): number {
  return isSigned ? (pattern << (32 - bits)) >> (32 - bits) : pattern;
}

/** Integers: the exact sum of the products and C, modulo 2^32 or clamped to the range of s32. */
export function integerMma({ m, k }: MmaShape, rule: IntegerRule): MmaProduct {
  const layouts = {
    a: layoutOfA(m, k, rule.a.bits),
    b: layoutOfB(k, rule.b.bits),
    c: layoutOfC(m, 32),
  };
  const [a, b] = [m * k, columns * k].map((size) => new Uint8Array(size));
  const c = new Uint32Array(m * columns);
  const products = {
    multiply: (x: number, y: number) => numberOf(rule.a, x) * numberOf(rule.b, y),
    and: (x: number, y: number) => x & y,
    xor: (x: number, y: number) => x ^ y,
  };
  const product = products[rule.product];
  const format = ({ bits, isSigned }: IntegerOperand) => `${isSigned ? 's' : 'u'}${bits}`;
  const isSum = rule.product === 'multiply' && rule.a.bits === 8;
  return {
    shape: { m, k },
    layouts,
    formats: isSum ? [format(rule.a), format(rule.b), 's32'] : null,
    execute: (warp, operands) => {
      gather(warp, operands.a, layouts.a, a);
      gather(warp, operands.b, layouts.b, b);
      gather(warp, operands.c, layouts.c, c);
      for (let row = 0; row < m; row++)
        for (let column = 0; column < columns; column++) {
          let sum = c[row * columns + column] | 0;
          for (let i = 0; i < k; i++) sum += product(a[row * k + i], b[column * k + i]);
          const result = rule.saturates ? Math.min(Math.max(sum, -(2 ** 31)), 2 ** 31 - 1) : sum;
          c[row * columns + column] = result;
        }
      scatter(warp, operands.d, layouts.c, c);
    },
  };
}
