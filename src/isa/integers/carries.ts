import type { LaneValue } from '../instruction.js';
import { type Row, row } from '../row.js';
import { integerOf, type IntegerType, registerValue } from '../values/integer-type.js';
import { type Emit, highProduct } from '../vectors/index.js';
import { type Expression, type FunctionBody, i32x4, v128 } from '../webassembly/index.js';
import { integerTypeOf } from './operators.js';

/** The exact result, from unsigned bit patterns except for the factors; it carries beyond the bits. */
type Compute = (type: IntegerType, operands: readonly LaneValue[], carry: bigint) => bigint;

function pattern({ bits }: IntegerType, value: LaneValue): bigint {
  return BigInt.asUintN(bits, BigInt(value));
}

function half(type: IntegerType, part: string, a: LaneValue, b: LaneValue): bigint {
  const product = integerOf(type, a) * integerOf(type, b);
  return BigInt.asUintN(type.bits, part === 'hi' ? product >> BigInt(type.bits) : product);
}

/** A result and its carry or borrow, as a mask. */
interface WithCarry {
  readonly result: Expression;
  readonly carry: Expression;
}

type CarryCode = (
  body: FunctionBody,
  operands: readonly Expression[],
  carry: Expression | null,
) => WithCarry;

/** a + b, and one more in the lanes of `carry`. */
const sumCode: CarryCode = (body, [a, b], carry) => {
  const plain = body.keep(i32x4.add(a, b));
  const isBeyond = body.keep(i32x4.ltU(plain, a));
  if (carry === null) return { result: plain, carry: isBeyond };
  const result = body.keep(i32x4.sub(plain, carry));
  const wraps = v128.and(carry, i32x4.eq(result, i32x4.splat(0)));
  return { result, carry: v128.or(isBeyond, wraps) };
};

/** a − b, and one less in the lanes of the borrow. */
const differenceCode: CarryCode = (body, [a, b], borrow) => {
  const plain = body.keep(i32x4.sub(a, b));
  const isBelow = body.keep(i32x4.ltU(a, b));
  if (borrow === null) return { result: plain, carry: isBelow };
  const wraps = v128.and(borrow, i32x4.eq(plain, i32x4.splat(0)));
  return { result: i32x4.add(plain, borrow), carry: v128.or(isBelow, wraps) };
};

function multiplyAddCode({ isSigned }: IntegerType, part: string): CarryCode {
  const product = part === 'hi' ? highProduct(isSigned) : i32x4.mul;
  return (body, [a, b, c], carry) => sumCode(body, [body.keep(product(a, b)), c], carry);
}

/** An instruction whose forms read or write the carry. */
interface CarryOperation {
  readonly opcode: 'add' | 'sub' | 'mad';
  /** The part of the product: empty for sums. */
  readonly part: '' | 'lo' | 'hi';
  readonly compute: Compute;
  readonly code: (type: IntegerType) => CarryCode;
}

function evaluated(
  { compute }: CarryOperation,
  type: IntegerType,
  reads: boolean,
  writes: boolean,
) {
  const width = type.bits as 32 | 64;
  return (...values: LaneValue[]): LaneValue | LaneValue[] => {
    const result = compute(type, values, reads ? BigInt(values[values.length - 1]) : 0n);
    const value = registerValue(width, result);
    // A sum beyond the bits carries, a difference below zero borrows.
    return writes ? [value, result >> BigInt(width) === 0n ? 0 : 1] : value;
  };
}

/** Of 64 bits there is no code. */
function emitted({ code }: CarryOperation, type: IntegerType, reads: boolean): Emit | null {
  if (type.bits !== 32) return null;
  return (body, ...sources) => {
    const values = sources.map(({ vectors }) => vectors[0]);
    const { result, carry } = code(type)(body, values, reads ? values[values.length - 1] : null);
    return [[result], [carry]];
  };
}

/** The carry that is read is the last source, and that which is written the last destination. */
function rowOf(operation: CarryOperation, reads: boolean, writes: boolean): Row {
  const { opcode, part } = operation;
  const name = `${opcode}${reads ? 'c' : ''}`;
  const operands = opcode === 'mad' ? 'a, b, c' : 'a, b';
  const syntax = `${name}${part === '' ? '' : `.${part}`}${writes ? '.cc' : ''}.type ${writes ? 'd|q' : 'd'}, ${operands}${reads ? ', {!}carry' : ''}`;
  return row({
    syntax,
    alternatives: { type: ['.u32', '.s32', '.u64', '.s64'] },
    evaluate: ({ type }: { readonly type: string }) =>
      evaluated(operation, integerTypeOf(type), reads, writes),
    emit: ({ type }: { readonly type: string }) => emitted(operation, integerTypeOf(type), reads),
    meaning: 'is',
    unit: 'alu',
    evidence: 'isa',
    section: 'Extended-Precision Integer Arithmetic Instructions',
  });
}

const operations: readonly CarryOperation[] = [
  {
    opcode: 'add',
    part: '',
    compute: (type, [a, b], carry) => pattern(type, a) + pattern(type, b) + carry,
    code: () => sumCode,
  },
  {
    opcode: 'sub',
    part: '',
    compute: (type, [a, b], carry) => pattern(type, a) - pattern(type, b) - carry,
    code: () => differenceCode,
  },
  ...(['lo', 'hi'] as const).map((part): CarryOperation => ({
    opcode: 'mad',
    part,
    compute: (type, [a, b, c], carry) => half(type, part, a, b) + pattern(type, c) + carry,
    code: (type) => multiplyAddCode(type, part),
  })),
];

/** Sums, differences and products with a carry in or out. */
export const carryRows: readonly Row[] = operations.flatMap((operation) => [
  rowOf(operation, false, true),
  rowOf(operation, true, false),
  rowOf(operation, true, true),
]);
