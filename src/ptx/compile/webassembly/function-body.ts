import { type ByteWriter, createByteWriter } from './byte-writer.js';

/** Types of values, by their bytes in a module. */
export const valueTypes = { i32: 0x7f, i64: 0x7e, v128: 0x7b } as const;

export type ValueType = keyof typeof valueTypes;

/** Writes the code that leaves one value on the stack. May be written several times. */
export type Expression = (body: FunctionBody) => void;

/** A function that others of the module call. */
export interface Subroutine {
  readonly name: string;
  /** How many vectors it takes; it gives one. */
  readonly parameters: number;
  readonly build: (body: FunctionBody, ...parameters: Expression[]) => Expression;
}

/** Says which number a subroutine has in the module, which has it from then on. */
export type SubroutineIndex = (subroutine: Subroutine) => number;

/** Says at which address a table lies in the module's memory. */
export type TableAddress = (table: Table) => number;

/** Data that code reads: made when it is first asked for. */
export interface Table {
  readonly name: string;
  readonly pack: () => ArrayBufferView;
}

/** What a body needs of the module around it. */
export interface Surroundings {
  readonly subroutineIndex: SubroutineIndex;
  readonly tableAddress: TableAddress;
}

/** The code of a function as it is written, and its local variables. */
export interface FunctionBody extends Surroundings {
  readonly code: ByteWriter;
  /** A new local variable; its number. */
  readonly declare: (type: ValueType) => number;
  /**
   * Evaluates the expression here and holds what it gives in a temporary variable; the expression that reads it, until
   * `release`.
   */
  readonly keep: (expression: Expression, type?: ValueType) => Expression;
  /** A temporary variable that is not written yet; its number. */
  readonly temporary: (type: ValueType) => number;
  /** Lets later `keep`s take the temporary variables. */
  readonly release: () => void;
  /** The body as a module has it: declarations, code and the end. */
  readonly finish: () => Uint8Array;
}

const end = 0x0b;
const localSet = 0x21;
const localGet = 0x20;

/** The value of a local variable. */
export function local(index: number): Expression {
  return ({ code }) => {
    code.byte(localGet);
    code.unsigned(index);
  };
}

/** Puts what is on the stack into a local variable. */
export function popInto({ code }: FunctionBody, index: number): void {
  code.byte(localSet);
  code.unsigned(index);
}

const ifBlock = 0x04;
const emptyBlock = 0x40;

/** Writes statements that are carried out where `condition`, an i32, is not 0. */
export function writeIf(body: FunctionBody, condition: Expression, statements: () => void): void {
  condition(body);
  body.code.bytes([ifBlock, emptyBlock]);
  statements();
  body.code.byte(end);
}

/** Evaluates `usual` here, and `other` in its place where `condition`, an i32, is not 0; held as by `keep`. */
export function replaceWhere(
  body: FunctionBody,
  usual: Expression,
  condition: Expression,
  other: Expression,
): Expression {
  usual(body);
  const index = body.temporary('v128');
  popInto(body, index);
  writeIf(body, condition, () => {
    other(body);
    popInto(body, index);
  });
  return local(index);
}

/** An empty body of a function of so many parameters. */
export function createFunctionBody(parameters: number, surroundings: Surroundings): FunctionBody {
  const code = createByteWriter();
  const types: ValueType[] = [];
  const free = new Map<ValueType, number[]>();
  const taken: { readonly type: ValueType; readonly index: number }[] = [];

  const declare = (type: ValueType): number => parameters + types.push(type) - 1;
  const temporary = (type: ValueType): number => {
    const index = free.get(type)?.pop() ?? declare(type);
    taken.push({ type, index });
    return index;
  };
  const body: FunctionBody = {
    ...surroundings,
    code,
    declare,
    temporary,
    keep: (expression, type = 'v128') => {
      expression(body);
      const index = temporary(type);
      popInto(body, index);
      return local(index);
    },
    release: () => {
      for (const { type, index } of taken) {
        const indices = free.get(type) ?? [];
        indices.push(index);
        free.set(type, indices);
      }
      taken.length = 0;
    },
    finish: () => {
      const whole = createByteWriter();
      whole.unsigned(types.length);
      for (const type of types) {
        whole.unsigned(1);
        whole.byte(valueTypes[type]);
      }
      whole.bytes(code.written());
      whole.byte(end);
      return whole.written();
    },
  };
  return body;
}
