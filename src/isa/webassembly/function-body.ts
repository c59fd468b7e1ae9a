import { type ByteWriter, createByteWriter } from './byte-writer.js';

/** Writes the code that leaves one value on the stack. It may be written several times. */
export type Expression = (body: FunctionBody) => void;

/** A function of vectors that other functions of the module call; its result is one vector. */
export interface Subroutine {
  readonly name: string;
  /** Number of vectors that it takes. */
  readonly parameters: number;
  readonly build: (body: FunctionBody, ...parameters: Expression[]) => Expression;
}

/** Data that code reads, made on first use. */
export interface Table {
  readonly name: string;
  readonly pack: () => ArrayBufferView;
}

/** Parts of the module and of the memory around it that code needs. */
export interface Surroundings {
  /** The number of a subroutine among the functions; on first use the subroutine is added to them. */
  readonly subroutineIndex: (subroutine: Subroutine) => number;
  /** The address of a table in memory. */
  readonly tableAddress: (table: Table) => number;
}

/** Code of a function that is being written. */
export interface FunctionBody extends Surroundings {
  readonly code: ByteWriter;
  /**
   * Evaluates the expression here and holds its value, a vector, in a temporary variable; returns the expression
   * that reads it.
   */
  readonly keep: (expression: Expression) => Expression;
  /** The number of a temporary variable for a vector that is not written yet. */
  readonly temporary: () => number;
  /** One more than the number of the last temporary variable. */
  readonly end: () => number;
}

const opcodes = { if: 0x04, end: 0x0b, localGet: 0x20, localSet: 0x21 } as const;
const emptyBlock = 0x40;

/** The value of a local variable. */
export function local(index: number): Expression {
  return ({ code }) => {
    code.byte(opcodes.localGet);
    code.unsigned(index);
  };
}

/** Pops the top of the stack into a local variable. */
export function popInto({ code }: FunctionBody, index: number): void {
  code.byte(opcodes.localSet);
  code.unsigned(index);
}

/** Writes statements that run where `condition`, an i32, is not 0. */
export function writeIf(body: FunctionBody, condition: Expression, statements: () => void): void {
  condition(body);
  body.code.byte(opcodes.if);
  body.code.byte(emptyBlock);
  statements();
  body.code.byte(opcodes.end);
}

/** Evaluates `usual` here, and `other` instead where `condition`, an i32, is not 0; held as by `keep`. */
export function replaceWhere(
  body: FunctionBody,
  usual: Expression,
  condition: Expression,
  other: Expression,
): Expression {
  usual(body);
  const index = body.temporary();
  popInto(body, index);
  writeIf(body, condition, () => {
    other(body);
    popInto(body, index);
  });
  return local(index);
}

/** Code that belongs to no function yet, whose temporary variables have the numbers from `firstTemporary` on. */
export function createFunctionBody(
  firstTemporary: number,
  surroundings: Surroundings,
): FunctionBody {
  let next = firstTemporary;
  const temporary = (): number => next++;
  const body: FunctionBody = {
    ...surroundings,
    code: createByteWriter(),
    temporary,
    keep: (expression) => {
      expression(body);
      const index = temporary();
      popInto(body, index);
      return local(index);
    },
    end: () => next,
  };
  return body;
}
