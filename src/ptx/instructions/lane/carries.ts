import {
  integerOf,
  type IntegerType,
  integerTypes,
  type LaneInstruction,
  type LaneValue,
  registerValue,
} from '../../../isa/index.js';
import { type FamilyFacts, row } from './row.js';

const { u32, s32, u64, s64 } = integerTypes;

function facts(instruction: string): FamilyFacts {
  return {
    meaning: 'is',
    unit: 'alu',
    evidence: 'isa',
    source: `PTX ISA, Extended-Precision Integer Arithmetic Instructions: ${instruction}`,
  };
}

/** An instruction with forms that read or write the carry. */
interface CarryOperation {
  /** Opcodes without and with the carry that is read: `add` and `addc`. */
  readonly opcodes: readonly [string, string];
  /** `.lo` or `.hi` of a product, placed before `.cc`. */
  readonly half: '' | '.lo' | '.hi';
  readonly operands: 2 | 3;
  /** The exact result, from unsigned bit patterns except for the factors; it carries beyond the bits. */
  readonly compute: (type: IntegerType, operands: readonly LaneValue[], carry: bigint) => bigint;
}

function pattern({ bits }: IntegerType, value: LaneValue): bigint {
  return BigInt.asUintN(bits, BigInt(value));
}

function half(type: IntegerType, a: LaneValue, b: LaneValue, isHigh: boolean): bigint {
  const product = integerOf(type, a) * integerOf(type, b);
  return BigInt.asUintN(type.bits, isHigh ? product >> BigInt(type.bits) : product);
}

const operations: readonly CarryOperation[] = [
  {
    opcodes: ['add', 'addc'],
    half: '',
    operands: 2,
    compute: (type, [a, b], carry) => pattern(type, a) + pattern(type, b) + carry,
  },
  {
    opcodes: ['sub', 'subc'],
    half: '',
    operands: 2,
    compute: (type, [a, b], carry) => pattern(type, a) - pattern(type, b) - carry,
  },
  ...(['.lo', '.hi'] as const).map((part): CarryOperation => ({
    opcodes: ['mad', 'madc'],
    half: part,
    operands: 3,
    compute: (type, [a, b, c], carry) =>
      half(type, a, b, part === '.hi') + pattern(type, c) + carry,
  })),
];

function rows(operation: CarryOperation, type: IntegerType): LaneInstruction[] {
  const { opcodes, operands, compute } = operation;
  const width = type.bits as 32 | 64;
  const form = (reads: boolean, writes: boolean): LaneInstruction => {
    const sources = Array.from({ length: operands }, () => width);
    const evaluate = (...values: LaneValue[]): LaneValue | LaneValue[] => {
      const result = compute(type, values, reads ? BigInt(values[operands]) : 0n);
      const value = registerValue(width, result);
      // A sum beyond the bits carries, a difference below zero borrows.
      return writes ? [value, result >> BigInt(width) === 0n ? 0 : 1] : value;
    };
    return row(
      `${opcodes[reads ? 1 : 0]}${operation.half}${writes ? '.cc' : ''}.${type.name}`,
      {
        destinations: writes ? [width, 'pred'] : [width],
        sources: reads ? [...sources, 'pred'] : sources,
        evaluate,
      },
      facts(opcodes[reads ? 1 : 0]),
    );
  };
  return [form(false, true), form(true, false), form(true, true)];
}

/** Sums, differences and products with a carry in or out; a carry that is read is the last source. */
export const carries: readonly LaneInstruction[] = operations.flatMap((operation) =>
  [u32, s32, u64, s64].flatMap((type) => rows(operation, type)),
);
