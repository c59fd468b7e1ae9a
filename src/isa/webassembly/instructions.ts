import type { Expression, FunctionBody } from './function-body.js';

// How instructions are written. Numbers: WebAssembly Core Specification, "Instructions".

const simdPrefix = 0xfd;

/** Writes the number of a vector instruction. */
export function simd({ code }: FunctionBody, opcode: number): void {
  code.byte(simdPrefix);
  code.unsigned(opcode);
}

/** An instruction of one operand. */
export type Unary = (a: Expression) => Expression;
/** An instruction of two operands. */
export type Binary = (a: Expression, b: Expression) => Expression;

/** A vector instruction of one operand. */
export function unary(opcode: number): Unary {
  return (a) => (body) => {
    a(body);
    simd(body, opcode);
  };
}

/** A vector instruction of two operands. */
export function binary(opcode: number): Binary {
  return (a, b) => (body) => {
    a(body);
    b(body);
    simd(body, opcode);
  };
}

/** An instruction that is followed by the number of a lane. */
export function ofLane(opcode: number): (a: Expression, lane: number) => Expression {
  return (a, lane) => (body) => {
    a(body);
    simd(body, opcode);
    body.code.byte(lane);
  };
}

/** An instruction that puts a value into a lane. */
export function replacing(
  opcode: number,
): (a: Expression, lane: number, value: Expression) => Expression {
  return (a, lane, value) => (body) => {
    a(body);
    value(body);
    simd(body, opcode);
    body.code.byte(lane);
  };
}

/** The 16 bytes as they are. */
export function constant(bytes: ArrayLike<number>): Expression {
  return (body) => {
    simd(body, 0x0c);
    body.code.bytes(bytes);
  };
}

/** Writes an address, which is an i32 expression, with `offset` added to it. Nothing needs to be aligned. */
export function writeAddress({ code }: FunctionBody, offset: number): void {
  code.unsigned(0);
  code.unsigned(offset);
}

/** A number on the stack. */
export function i32Constant(value: number): Expression {
  return ({ code }) => {
    code.byte(0x41);
    code.signed(value | 0);
  };
}

/** Shifts of all lanes by one constant amount. */
export function shift(opcode: number): (a: Expression, amount: number) => Expression {
  return (a, amount) => (body) => {
    a(body);
    i32Constant(amount)(body);
    simd(body, opcode);
  };
}

/** A scalar instruction of two operands. */
export function plain(opcode: number): Binary {
  return (a, b) => (body) => {
    a(body);
    b(body);
    body.code.byte(opcode);
  };
}

/** A scalar instruction of one operand. */
export function plainUnary(opcode: number): Unary {
  return (a) => (body) => {
    a(body);
    body.code.byte(opcode);
  };
}

const truncationPrefix = 0xfc;

/** A scalar conversion to the nearest integer of the range; NaN gives 0. */
export function saturatingTruncation(opcode: number): Unary {
  return (a) => (body) => {
    a(body);
    body.code.byte(truncationPrefix);
    body.code.unsigned(opcode);
  };
}
