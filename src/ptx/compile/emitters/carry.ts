import {
  type Expression,
  type FunctionBody,
  highWords,
  i32x4,
  i64x2,
  v128,
} from '../../../isa/webassembly/index.js';
import type { Emitter, SourceValue } from './emitter.js';

/** A result and its carry or borrow, as a mask. */
interface WithCarry {
  readonly result: Expression;
  readonly carry: Expression;
}

const zero = i32x4.splat(0);

/** a + b, and one more in the lanes of `carry`. */
function sum(
  body: FunctionBody,
  a: Expression,
  b: Expression,
  carry: Expression | null,
): WithCarry {
  const plain = body.keep(i32x4.add(a, b));
  const isBeyond = body.keep(i32x4.ltU(plain, a));
  if (carry === null) return { result: plain, carry: isBeyond };
  const result = body.keep(i32x4.sub(plain, carry));
  const wraps = v128.and(carry, i32x4.eq(result, zero));
  return { result, carry: v128.or(isBeyond, wraps) };
}

/** a − b, and one less in the lanes of `borrow`. */
function difference(
  body: FunctionBody,
  a: Expression,
  b: Expression,
  borrow: Expression | null,
): WithCarry {
  const plain = body.keep(i32x4.sub(a, b));
  const isBelow = body.keep(i32x4.ltU(a, b));
  if (borrow === null) return { result: plain, carry: isBelow };
  const wraps = v128.and(borrow, i32x4.eq(plain, zero));
  return { result: i32x4.add(plain, borrow), carry: v128.or(isBelow, wraps) };
}

type Combine = typeof sum;

interface CarryOperation {
  readonly name: (carries: { reads: boolean; writes: boolean }) => string;
  readonly operands: 2 | 3;
  readonly compute: (
    body: FunctionBody,
    operands: readonly Expression[],
    carry: Expression | null,
  ) => WithCarry;
}

function ofTwo(opcode: string, type: string, combine: Combine): CarryOperation {
  return {
    name: ({ reads, writes }) => `${opcode}${reads ? 'c' : ''}${writes ? '.cc' : ''}.${type}`,
    operands: 2,
    compute: (body, [a, b], carry) => combine(body, a, b, carry),
  };
}

function multiplyAdd(
  half: 'lo' | 'hi',
  type: string,
  product: (a: Expression, b: Expression) => Expression,
): CarryOperation {
  return {
    name: ({ reads, writes }) => `mad${reads ? 'c' : ''}.${half}${writes ? '.cc' : ''}.${type}`,
    operands: 3,
    compute: (body, [a, b, c], carry) => sum(body, body.keep(product(a, b)), c, carry),
  };
}

const operations: readonly CarryOperation[] = ['u32', 's32'].flatMap((type) => [
  ofTwo('add', type, sum),
  ofTwo('sub', type, difference),
  multiplyAdd('lo', type, i32x4.mul),
  multiplyAdd('hi', type, (a, b) =>
    type === 'u32'
      ? highWords(i64x2.extmulLowI32x4U(a, b), i64x2.extmulHighI32x4U(a, b))
      : highWords(i64x2.extmulLowI32x4S(a, b), i64x2.extmulHighI32x4S(a, b)),
  ),
]);

const uses = [
  { reads: false, writes: true },
  { reads: true, writes: false },
  { reads: true, writes: true },
];

/**
 * Sums and products of 32 bits with a carry in or out, differences with a borrow; the carry that is read is the last
 * source.
 */
export const carryEmitters: readonly Emitter[] = operations.flatMap(({ name, operands, compute }) =>
  uses.map((carries): Emitter => ({
    name: name(carries),
    sources: operands + (carries.reads ? 1 : 0),
    emit: (body, ...sources: SourceValue[]) => {
      const values = sources.map(({ vectors }) => vectors[0]);
      const carryIn = carries.reads ? values[operands] : null;
      const { result, carry } = compute(body, values, carryIn);
      return carries.writes ? [[result], [carry]] : [[result]];
    },
  })),
);
