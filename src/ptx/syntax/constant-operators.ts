import { type Constant, doubleConstant, doubleOfBits, integerConstant } from './constants.js';

/** The semantics of a binary operator: on integers, and on doubles where it has them. */
export interface BinaryOperator {
  /** Operators with a higher precedence bind closer (PTX ISA, "Constant Expressions", operator precedence as in C). */
  readonly precedence: number;
  /** Type of the result: that of both operands, of the first, or signed. */
  readonly result: 'converted' | 'first' | 'signed';
  /** The operation on integers; null where there is no result: division by zero. */
  readonly integers: (a: bigint, b: bigint) => bigint | null;
  readonly doubles: ((a: number, b: number) => number | boolean) | null;
  /** The operands that are read as unsigned, whatever their types. */
  readonly readsUnsigned: 'both' | 'second' | 'if-either' | 'neither';
}

const truth = (value: boolean) => (value ? 1n : 0n);
/** The amount of a shift, at most 64: a shift by 64 or more leaves only the sign. */
const shiftLimit = (count: bigint) => (count > 64n ? 64n : count);

function arithmetic(
  precedence: number,
  integers: BinaryOperator['integers'],
  doubles: BinaryOperator['doubles'],
): BinaryOperator {
  return { precedence, result: 'converted', integers, doubles, readsUnsigned: 'if-either' };
}

function comparison(
  precedence: number,
  integers: (a: bigint, b: bigint) => boolean,
  doubles: (a: number, b: number) => boolean,
): BinaryOperator {
  const compare = (a: bigint, b: bigint) => truth(integers(a, b));
  return { precedence, result: 'signed', integers: compare, doubles, readsUnsigned: 'if-either' };
}

function logical(precedence: number, integers: BinaryOperator['integers']): BinaryOperator {
  return { precedence, result: 'signed', integers, doubles: null, readsUnsigned: 'neither' };
}

function shift(integers: BinaryOperator['integers']): BinaryOperator {
  return { precedence: 8, result: 'first', integers, doubles: null, readsUnsigned: 'second' };
}

/** The binary operators by their marks (PTX ISA, "Summary of Constant Expression Evaluation Rules"). */
export const binaryOperators: ReadonlyMap<string, BinaryOperator> = new Map([
  [
    '*',
    arithmetic(
      10,
      (a, b) => a * b,
      (a, b) => a * b,
    ),
  ],
  [
    '/',
    arithmetic(
      10,
      (a, b) => (b === 0n ? null : a / b),
      (a, b) => a / b,
    ),
  ],
  [
    '%',
    {
      precedence: 10,
      result: 'signed',
      integers: (a, b) => (b === 0n ? null : a % b),
      doubles: null,
      readsUnsigned: 'both',
    },
  ],
  [
    '+',
    arithmetic(
      9,
      (a, b) => a + b,
      (a, b) => a + b,
    ),
  ],
  [
    '-',
    arithmetic(
      9,
      (a, b) => a - b,
      (a, b) => a - b,
    ),
  ],
  ['<<', shift((a, b) => a << shiftLimit(b))],
  ['>>', shift((a, b) => a >> shiftLimit(b))],
  [
    '<',
    comparison(
      7,
      (a, b) => a < b,
      (a, b) => a < b,
    ),
  ],
  [
    '>',
    comparison(
      7,
      (a, b) => a > b,
      (a, b) => a > b,
    ),
  ],
  [
    '<=',
    comparison(
      7,
      (a, b) => a <= b,
      (a, b) => a <= b,
    ),
  ],
  [
    '>=',
    comparison(
      7,
      (a, b) => a >= b,
      (a, b) => a >= b,
    ),
  ],
  [
    '==',
    comparison(
      6,
      (a, b) => a === b,
      (a, b) => a === b,
    ),
  ],
  [
    '!=',
    comparison(
      6,
      (a, b) => a !== b,
      (a, b) => a !== b,
    ),
  ],
  ['&', arithmetic(5, (a, b) => a & b, null)],
  ['^', arithmetic(4, (a, b) => a ^ b, null)],
  ['|', arithmetic(3, (a, b) => a | b, null)],
  ['&&', logical(2, (a, b) => truth(a !== 0n && b !== 0n))],
  ['||', logical(1, (a, b) => truth(a !== 0n || b !== 0n))],
] as const);

/** The value of `a operator b`; null where it has none. */
export function combine(operator: BinaryOperator, a: Constant, b: Constant): Constant | null {
  if (a.kind === 'f64' && b.kind === 'f64' && operator.doubles !== null) {
    const result = operator.doubles(doubleOfBits(a.bits), doubleOfBits(b.bits));
    return typeof result === 'number'
      ? doubleConstant(result)
      : integerConstant(truth(result), false);
  }
  if (a.kind !== 'integer' || b.kind !== 'integer') return null;
  const isUnsigned = a.isUnsigned || b.isUnsigned;
  const both =
    operator.readsUnsigned === 'both' || (operator.readsUnsigned === 'if-either' && isUnsigned);
  const second = both || operator.readsUnsigned === 'second';
  const result = operator.integers(
    both ? BigInt.asUintN(64, a.value) : a.value,
    second ? BigInt.asUintN(64, b.value) : b.value,
  );
  if (result === null) return null;
  const resultIsUnsigned = { converted: isUnsigned, first: a.isUnsigned, signed: false };
  return integerConstant(result, resultIsUnsigned[operator.result]);
}

/** The value of a unary operator on a constant; null where it takes no such constant. */
export function applyUnary(operator: string, operand: Constant): Constant | null {
  if (operand.kind === 'integer') {
    const { value, isUnsigned } = operand;
    if (operator === '-') return integerConstant(-value, isUnsigned);
    if (operator === '!') return integerConstant(truth(value === 0n), false);
    return operator === '~' ? integerConstant(~value, true) : operand;
  }
  if (operator === '+') return operand;
  if (operator !== '-') return null;
  return {
    kind: operand.kind,
    bits: operand.bits ^ (operand.kind === 'f32' ? 1n << 31n : 1n << 63n),
  };
}
