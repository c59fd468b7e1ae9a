import type { PatternArray } from '../../../formats/index.js';
import {
  architectures,
  type BlackwellArchitecture,
  createBlockScaledProduct,
  createTensorCoreTile,
  findBlockScaledArithmetic,
  findTensorCoreArithmetic,
  instructionLengths,
  type OperandFormatName,
  operandFormats,
  type TensorCoreArithmetic,
  tensorCoreProduct,
} from '../../../hardware/index.js';
import { RequestError } from '../../../request-error.js';
import { patternBits } from './mma-elements.js';
import type { MmaInstruction } from './mma-instruction.js';

/** The architectures whose arithmetic the machine can have; sm_90's is that of its wgmma. */
export type MachineArchitecture = 'sm_90' | BlackwellArchitecture;

/** The factors of a block-scaled product: [rows][k / block] and [n][k / block]. */
export interface ProductScales {
  readonly a: Uint8Array;
  readonly b: Uint8Array;
}

/** The operands of one CTA's rows, and the functions that multiply them. */
export interface ProductCore {
  /** Patterns of A, [rows][k], and of all of B, [n][k]; one of less than 8 bits takes a byte. */
  readonly a: PatternArray;
  readonly b: PatternArray;
  /** Words of C, and then of D, [rows][n]. */
  readonly c: Uint32Array;
  /** Notes that B has changed. */
  readonly packB: () => void;
  /** C += A·B. */
  readonly multiply: (scales: ProductScales | null) => void;
}

/** Multiplication of matrices of some formats. */
export interface ProductArithmetic {
  /** The error in formats and K of an instruction, worded to follow `tcgen05.mma`; null where there is none. */
  readonly problemOf: (instruction: MmaInstruction) => string | null;
  readonly createCore: (instruction: MmaInstruction, rows: number) => ProductCore;
}

type Lengths = Pick<MmaInstruction, 'shape'> & { readonly rows: number };

/** Operands that lie in arrays, for products by definition. */
function arrays({ shape, rows }: Lengths, bits: { readonly a: number; readonly b: number }) {
  const of = (count: number, width: number): PatternArray =>
    new (width > 16 ? Uint32Array : width > 8 ? Uint16Array : Uint8Array)(count);
  return {
    a: of(rows * shape.k, bits.a),
    b: of(shape.n * shape.k, bits.b),
    c: new Uint32Array(rows * shape.n),
    packB: () => {},
  };
}

function problemOfLength({ a, shape }: MmaInstruction, k: number): string | null {
  return shape.k === k ? null : `of ${a} with K = ${shape.k}; ${k} is due`;
}

/** Sums of floating-point numbers, in fp32 by a tile in WebAssembly, in fp16 by the definition. */
export function floatArithmetic(arithmetic: TensorCoreArithmetic): ProductArithmetic {
  const { operands, mixed, accumulator, sequence, instruction: mnemonic } = arithmetic;
  return {
    problemOf: (instruction) => {
      const { a, b } = instruction;
      if (sequence !== 'chain')
        return `with the arithmetic of ${mnemonic} of ${operands.join('/')} into ${accumulator}, which is not modelled`;
      const has = (format: string) => (operands as readonly string[]).includes(format);
      const isOfThem = has(a) && has(b) && (a === b || mixed);
      if (!isOfThem || (instruction.accumulator ?? 'fp32') !== accumulator)
        return `of ${a} and ${b} with the arithmetic of ${operands.join('/')}${mixed ? '' : ', both alike'}, into ${accumulator}`;
      const [k] = instructionLengths('tcgen05.mma', a as OperandFormatName);
      return problemOfLength(instruction, k);
    },
    createCore: ({ a, b, shape }, rows) => {
      const [aFormat, bFormat] = [a, b] as readonly OperandFormatName[];
      if (accumulator === 'fp32') {
        const size = { rows, columns: shape.n, inner: shape.k };
        const tile = createTensorCoreTile(arithmetic, { ...size, aFormat, bFormat });
        return {
          a: tile.a,
          b: tile.b,
          c: tile.cBits,
          packB: tile.packTransposedB,
          multiply: () => {
            tile.packA();
            tile.multiplyAccumulate();
          },
        };
      }
      const core = arrays({ shape, rows }, { a: patternBits(a), b: patternBits(b) });
      return {
        ...core,
        multiply: () => {
          const halves = core.c.map((word) => word & 0xffff);
          const product = { ...shape, m: rows, a: core.a, bTransposed: core.b, c: halves };
          core.c.set(tensorCoreProduct(arithmetic, { ...product, aFormat, bFormat }));
        },
      };
    },
  };
}

/** Products with scale factors. Throws a RequestError for products that are not modelled. */
function blockScaledArithmetic(
  architecture: MachineArchitecture,
  { a, b, scales }: MmaInstruction,
): ProductArithmetic {
  if (scales === undefined || architecture === 'sm_90' || a === 'u8' || a === 's8')
    throw new RequestError(`${architecture} has no block-scaled products of ${a}`);
  const { kind, format: scale, block } = scales;
  const bFormat = b as OperandFormatName;
  const arithmetic = findBlockScaledArithmetic({
    kind,
    architecture,
    scale,
    block,
    a,
    b: bFormat,
  });
  return {
    problemOf: (instruction) => problemOfLength(instruction, arithmetic.k),
    createCore: ({ shape }, rows) => {
      const core = arrays({ shape, rows }, { a: 8, b: 8 });
      const execute = createBlockScaledProduct(arithmetic, a, bFormat);
      return {
        ...core,
        multiply: (factors) => {
          if (factors === null) throw new RequestError('a block-scaled product needs its factors');
          execute({
            m: rows,
            n: shape.n,
            a: core.a,
            bTransposed: core.b,
            c: core.c,
            aScales: factors.a,
            bScales: factors.b,
          });
        },
      };
    },
  };
}

const integerFormats: readonly string[] = ['u8', 's8'];

/**
 * kind::i8: exact sums, which wrap around, or stop at the ends of the range of s32. Source: PTX ISA 9.2, table 42 and the matrix
 * shapes of tcgen05.mma; it is assumed that a sum is saturated once, and not after each of its products.
 */
const integerArithmetic: ProductArithmetic = {
  problemOf: (instruction) => {
    const { a, b, accumulator, negateA, negateB } = instruction;
    if (!integerFormats.includes(b) || accumulator !== 's32')
      return `of ${a} and ${b} into ${accumulator ?? 'fp32'}`;
    if (negateA === true || negateB === true) return 'of kind::i8 that negates an operand';
    return problemOfLength(instruction, 32);
  },
  createCore: ({ a: aFormat, b: bFormat, shape, saturates }, rows) => {
    const core = arrays({ shape, rows }, { a: 8, b: 8 });
    const { n, k } = shape;
    const signed = (format: string, patterns: PatternArray): ArrayLike<number> =>
      format === 's8'
        ? new Int8Array(patterns.buffer, patterns.byteOffset, patterns.length)
        : patterns;
    const [a, b] = [signed(aFormat, core.a), signed(bFormat, core.b)];
    return {
      ...core,
      multiply: () => {
        for (let i = 0; i < rows; i++)
          for (let j = 0; j < n; j++) {
            let sum = core.c[i * n + j] | 0;
            for (let l = 0; l < k; l++) sum += a[i * k + l] * b[j * k + l];
            const limited = Math.min(Math.max(sum, -(2 ** 31)), 2 ** 31 - 1);
            core.c[i * n + j] = saturates === true ? limited : sum;
          }
      },
    };
  },
};

/** The arithmetic for the operands of an instruction. Throws a RequestError where it is not modelled. */
export function findProductArithmetic(
  architecture: MachineArchitecture,
  instruction: MmaInstruction,
): ProductArithmetic {
  const { a, b, accumulator = 'fp32', scales } = instruction;
  if (scales !== undefined) return blockScaledArithmetic(architecture, instruction);
  if (a === 'u8' || a === 's8') {
    // The units of whole numbers are those of sm_100a and sm_110a (PTX ISA, `tcgen05.mma`, target notes).
    if (architecture !== 'sm_100' && architecture !== 'sm_110')
      throw new RequestError(`tcgen05.mma of kind::i8 on ${architecture}, which has none`);
    return integerArithmetic;
  }
  if (b === 'u8' || b === 's8' || accumulator === 's32')
    throw new RequestError(`tcgen05.mma of ${a} and ${b} into ${accumulator} does not exist`);
  const { tensorCore } = architectures[architecture];
  const query = { instruction: tensorCore, architecture, a, b, accumulator };
  return floatArithmetic(findTensorCoreArithmetic(query));
}

/** Flips the sign bits of the patterns of a format. */
export function negate(patterns: PatternArray, format: OperandFormatName): void {
  const signBit = 1 << (operandFormats[format].storageBits - 1);
  for (let i = 0; i < patterns.length; i++) patterns[i] ^= signBit;
}
