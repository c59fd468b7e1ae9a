import { beginsConstant, readConstant, readTerm } from './constant-expression.js';
import { readNumber } from './constants.js';
import type { Operand } from './module.js';
import type { TokenReader } from './token-reader.js';

const whatIsExpected = 'an operand (a name, a constant, "[…]" or "{…}")';

/** Reads the offset of an address or a sum: `+ 4 - 2`, 0 for nothing. */
export function readOffset(reader: TokenReader): bigint {
  let offset = 0n;
  for (;;) {
    if (reader.acceptMark('+')) offset += readTerm(reader);
    else if (reader.acceptMark('-')) offset -= readTerm(reader);
    else return offset;
  }
}

/** Reads a name with its dotted parts: `%tid.x`. */
function readDottedName(reader: TokenReader): string {
  let name = reader.expectName('a name');
  while (reader.kind === 'dotted' && reader.start === reader.previousEnd) {
    name += `.${reader.text}`;
    reader.advance();
  }
  return name;
}

/** Reads operands between a mark that has been read and `close`. */
function readUntil(reader: TokenReader, close: string): readonly Operand[] {
  const elements: Operand[] = [];
  if (reader.acceptMark(close)) return elements;
  do elements.push(readOperand(reader));
  while (reader.acceptMark(','));
  if (!reader.acceptMark(close)) reader.fail(`"," or "${close}"`);
  return elements;
}

/** Reads an address, from its `[`. */
function readAddress(reader: TokenReader): Operand {
  const place = reader.place();
  reader.advance();
  const isAbsolute = beginsConstant(reader);
  if (!isAbsolute && reader.kind !== 'name' && reader.kind !== 'text')
    reader.fail('an address (a register, a variable or a number)');
  const base = isAbsolute ? null : readDottedName(reader);
  const offset = isAbsolute ? absoluteAddress(reader) : readOffset(reader);
  const coordinates: (readonly Operand[])[] = [];
  while (reader.acceptMark(',')) {
    if (!reader.acceptMark('{')) reader.fail('"{" and the coordinates of a tensor');
    coordinates.push(reader.nested(() => readUntil(reader, '}')));
  }
  if (!reader.acceptMark(']'))
    reader.fail(coordinates.length === 0 && base !== null ? '"+", "-", "," or "]"' : '"," or "]"');
  return { kind: 'address', base, offset, coordinates, place };
}

function absoluteAddress(reader: TokenReader): bigint {
  const place = reader.place();
  const constant = readConstant(reader);
  if (constant.kind === 'integer') return constant.value;
  throw reader.error('expected an integer as an address, found a floating-point number', place);
}

function readConstantOperand(reader: TokenReader): Operand {
  const place = reader.place();
  const constant = readConstant(reader);
  return constant.kind === 'integer'
    ? { kind: 'integer', value: constant.value, place }
    : { kind: 'float', format: constant.kind, bits: constant.bits, place };
}

/** Reads a decimal that begins with its point: `.5`. */
function readFraction(reader: TokenReader): Operand {
  const place = reader.place();
  const constant = /^\d/.test(reader.text) ? readNumber(`0.${reader.text}`) : null;
  if (constant === null || constant.kind === 'integer') reader.fail(whatIsExpected);
  reader.advance();
  return { kind: 'float', format: constant.kind, bits: constant.bits, place };
}

/** Reads a name, `name+4` or `_`. */
function readNamed(reader: TokenReader): Operand {
  const place = reader.place();
  const name = readDottedName(reader);
  if (name === '_') return { kind: 'sink', place };
  if (!reader.isMark('+') && !reader.isMark('-')) return { kind: 'name', name, place };
  return { kind: 'sum', name, offset: readOffset(reader), place };
}

/** Reads `p`, `p|q`, `_|q` or `p|!q`. */
function readName(reader: TokenReader): Operand {
  const first = readNamed(reader);
  if (!reader.acceptMark('|')) return first;
  const isNegated = reader.isMark('!');
  if (!isNegated && reader.kind !== 'name') reader.fail('a predicate or register behind "|"');
  const second = isNegated ? readNegated(reader) : readNamed(reader);
  return { kind: 'pair', first, second, place: first.place };
}

/** Reads `!p`. */
function readNegated(reader: TokenReader): Operand {
  const place = reader.place();
  reader.advance();
  if (reader.kind !== 'name') reader.fail('a predicate behind "!"');
  return { kind: 'negated', operand: readNamed(reader), place };
}

/** Reads the operands of a call in parentheses, from the `(` at the reader. */
export function readList(reader: TokenReader): Operand {
  const place = reader.place();
  reader.advance();
  return { kind: 'list', elements: reader.nested(() => readUntil(reader, ')')), place };
}

/**
 * Reads an operand of an instruction (PTX ISA, "Instruction Operands").
 *
 * @throws RequestError where there is no operand
 */
export function readOperand(reader: TokenReader): Operand {
  if (reader.kind === 'dotted') return readFraction(reader);
  if (reader.isMark('[')) return readAddress(reader);
  if (reader.isMark('!')) return readNegated(reader);
  if (reader.isMark('{')) {
    const place = reader.place();
    reader.advance();
    return { kind: 'vector', elements: reader.nested(() => readUntil(reader, '}')), place };
  }
  if (beginsConstant(reader)) return readConstantOperand(reader);
  if (reader.kind !== 'name' && reader.kind !== 'text') reader.fail(whatIsExpected);
  return readName(reader);
}
