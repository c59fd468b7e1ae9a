import { binaryOperators, combine, applyUnary } from './constant-operators.js';
import { type Constant, integerConstant, readNumber } from './constants.js';
import type { TokenReader } from './token-reader.js';

const unaryOperators: ReadonlySet<string> = new Set(['+', '-', '!', '~']);
const whatIsExpected = 'a constant';

/** Whether an expression of constants begins at the token. */
export function beginsConstant(reader: TokenReader): boolean {
  if (reader.kind === 'number') return true;
  if (reader.kind === 'name') return reader.text === 'WARP_SZ';
  return reader.kind === 'mark' && (reader.text === '(' || unaryOperators.has(reader.text));
}

/** `WARP_SZ`, a number, or a constant in parentheses, with the signs and casts before it. */
function readUnary(reader: TokenReader): Constant {
  const place = reader.place();
  if (reader.kind === 'mark' && unaryOperators.has(reader.text)) {
    const operator = reader.text;
    reader.advance();
    const operand = reader.nested(() => readUnary(reader));
    const result = applyUnary(operator, operand);
    if (result === null)
      throw reader.error(
        `"${operator}" is of integers, and this is a floating-point number`,
        place,
      );
    return result;
  }
  if (reader.acceptMark('(')) return readParenthesised(reader);
  if (reader.kind === 'name' && reader.text === 'WARP_SZ') {
    reader.advance();
    return integerConstant(32n, false);
  }
  if (reader.kind !== 'number') reader.fail(whatIsExpected);
  const number = readNumber(reader.text);
  if (number === null)
    reader.fail('a number of at most 64 bits (32, 0x20, 040, 0b100000, 32U, 0f42000000, 32.0)');
  reader.advance();
  return number;
}

/** Reads the text after `(`: a cast, or an expression. */
function readParenthesised(reader: TokenReader): Constant {
  return reader.nested(() => {
    const place = reader.place();
    if (!reader.isDotted('s64') && !reader.isDotted('u64')) {
      const value = readConstant(reader);
      reader.expectMark(')');
      return value;
    }
    const isUnsigned = reader.text === 'u64';
    reader.advance();
    reader.expectMark(')');
    const operand = readUnary(reader);
    if (operand.kind === 'integer') return integerConstant(operand.value, isUnsigned);
    throw reader.error('a cast is of integers, and this is a floating-point number', place);
  });
}

/** Reads operators of at least this `precedence`, from the left. */
function readBinary(reader: TokenReader, precedence: number): Constant {
  let left = readUnary(reader);
  for (;;) {
    const operator = reader.kind === 'mark' ? binaryOperators.get(reader.text) : undefined;
    if (operator === undefined || operator.precedence < precedence) return left;
    const place = reader.place();
    const name = reader.text;
    reader.advance();
    const right = reader.nested(() => readBinary(reader, operator.precedence + 1));
    const result = combine(operator, left, right);
    if (result === null)
      throw reader.error(
        `"${name}" has no value here: it takes two integers or two doubles as PTX has them, and no division by zero`,
        place,
      );
    left = result;
  }
}

/**
 * Reads a constant expression (PTX ISA, "Constant Expressions") with the operators of C.
 *
 * @returns its value; a `0f` constant alone keeps its 32 bits
 * @throws RequestError where there is no expression, or it has no value
 */
export function readConstant(reader: TokenReader): Constant {
  const condition = readBinary(reader, 1);
  if (!reader.isMark('?')) return condition;
  if (condition.kind !== 'integer') reader.fail('an integer before "?"');
  reader.advance();
  const [yes, no] = reader.nested(() => {
    const first = readConstant(reader);
    reader.expectMark(':');
    return [first, readConstant(reader)];
  });
  const chosen = condition.value !== 0n ? yes : no;
  if (yes.kind !== 'integer' || no.kind !== 'integer') return chosen;
  return integerConstant(
    (chosen as Constant & { value: bigint }).value,
    yes.isUnsigned || no.isUnsigned,
  );
}

/** Reads the terms that `+` and `-` add to the base of an address: `4`, `(1 << 4)`, `2*8`. */
export function readTerm(reader: TokenReader): bigint {
  const place = reader.place();
  const term = readBinary(reader, 10);
  if (term.kind === 'integer') return term.value;
  throw reader.error('expected an integer, found a floating-point number', place);
}

/**
 * An integer constant expression between two bounds, both included.
 *
 * @throws RequestError where there is no expression, or it is out of bounds
 */
export function readIntegerWithin(
  reader: TokenReader,
  what: string,
  [least, most]: readonly [number, number],
): number {
  if (!beginsConstant(reader)) reader.fail(what);
  const place = reader.place();
  const constant = readConstant(reader);
  const value = constant.kind === 'integer' ? Number(constant.value) : NaN;
  if (value >= least && value <= most) return value;
  throw reader.error(`expected ${what} from ${least} to ${most}`, place);
}
