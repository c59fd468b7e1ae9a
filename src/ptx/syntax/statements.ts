import { readIntegerWithin } from './constant-expression.js';
import { beginsDeclaration, readDeclaration, readLinkage, readParameters } from './declarations.js';
import type { Guard, Operand, Place, PtxInstruction, SourcePosition, Statement } from './module.js';
import { readList, readOperand } from './operands.js';
import type { TokenReader } from './token-reader.js';

/** Bound on lines, columns and numbers of files. */
const mostLines = 2 ** 32 - 1;

/** Reads `@p` or `@!p`. */
function readGuard(reader: TokenReader): Guard | null {
  if (!reader.acceptMark('@')) return null;
  const isNegated = reader.acceptMark('!');
  return { predicate: reader.expectName('a predicate'), isNegated };
}

/** Reads the dotted words after an opcode. */
function readModifiers(reader: TokenReader): readonly string[] {
  const modifiers: string[] = [];
  while (reader.kind === 'dotted') {
    modifiers.push(reader.text);
    reader.advance();
  }
  return modifiers;
}

/** Reads operands up to `;` and skips it. */
function readOperands(reader: TokenReader, opcode: string): readonly Operand[] {
  const operands: Operand[] = [];
  if (reader.acceptMark(';')) return operands;
  do {
    const isList = opcode === 'call' && reader.isMark('(');
    operands.push(isList ? readList(reader) : readOperand(reader));
  } while (reader.acceptMark(','));
  if (!reader.acceptMark(';')) reader.fail('"," or ";" behind an operand');
  return operands;
}

function finishInstruction(
  reader: TokenReader,
  guard: Guard | null,
  opcode: string,
  place: Place,
): PtxInstruction {
  const modifiers = readModifiers(reader);
  const operands = readOperands(reader, opcode);
  return { kind: 'instruction', guard, opcode, modifiers, operands, place };
}

/** Reads names separated by commas, and `;`. */
function readNames(reader: TokenReader, what: string): readonly string[] {
  const names: string[] = [];
  do names.push(reader.expectName(what));
  while (reader.acceptMark(','));
  if (!reader.acceptMark(';')) reader.fail('"," or ";"');
  return names;
}

/** Reads the text after `name: .callprototype`. */
function readPrototype(reader: TokenReader, name: string, place: Place): Statement {
  const returns = readParameters(reader);
  reader.expectName('the name "_" of a prototype');
  const parameters = readParameters(reader);
  while (reader.kind === 'dotted') {
    reader.advance();
    readNumbers(reader);
  }
  reader.expectMark(';');
  return { kind: 'call-prototype', name, returns, parameters, place };
}

/** Reads the text after `name:`: the statement of a label, or of the list with this name. */
function finishLabel(reader: TokenReader, name: string, place: Place): Statement {
  const directive = reader.kind === 'dotted' ? reader.text : '';
  if (directive === 'branchtargets') {
    reader.advance();
    return { kind: 'branch-targets', name, labels: readNames(reader, 'a label'), place };
  }
  if (directive === 'calltargets') {
    reader.advance();
    return { kind: 'call-targets', name, functions: readNames(reader, 'a function'), place };
  }
  if (directive !== 'callprototype') return { kind: 'label', name, place };
  reader.advance();
  return readPrototype(reader, name, place);
}

/** Reads `.loc 1 20 5`, with `inlined_at 1 2 3` after it; the contents of `function_name label` are skipped. */
function readLocation(reader: TokenReader): Statement {
  const place = reader.place();
  reader.advance();
  const position = readPosition(reader);
  let inlinedAt: SourcePosition | null = null;
  while (reader.acceptMark(',')) {
    const word = reader.expectName('"function_name" or "inlined_at"');
    if (word === 'inlined_at') inlinedAt = readPosition(reader);
    else {
      reader.expectName('a label');
      if (reader.acceptMark('+')) reader.expectKind('number', 'a number');
    }
  }
  return { kind: 'location', ...position, inlinedAt, place };
}

function readPosition(reader: TokenReader): SourcePosition {
  const read = (what: string) => {
    const place = reader.place();
    const value = Number(reader.expectKind('number', what));
    if (Number.isInteger(value) && value <= mostLines) return value;
    throw reader.error(`expected ${what} below 2^32`, place);
  };
  return {
    file: read('the number of a file'),
    line: read('a line'),
    column: read('a column'),
  };
}

/** Skips `.pragma "…", "…";`: advice that changes no result. */
export function skipPragma(reader: TokenReader): void {
  reader.advance();
  do reader.expectKind('text', 'a text in double quotes');
  while (reader.acceptMark(','));
  reader.expectMark(';');
}

/** Reads a line of a body that begins with a dot: a declaration, `.loc`, `.pragma`. */
function readDirective(reader: TokenReader, statements: Statement[]): void {
  if (beginsDeclaration(reader)) statements.push(...readDeclaration(reader, null));
  else if (reader.isDotted('loc')) statements.push(readLocation(reader));
  else if (reader.isDotted('pragma')) skipPragma(reader);
  else {
    const linkage = readLinkage(reader);
    if (linkage === null || !beginsDeclaration(reader))
      reader.fail('a declaration (.reg, .shared, …), .loc, .pragma, an instruction or "}"');
    statements.push(...readDeclaration(reader, linkage));
  }
}

/**
 * Reads a block from its `{`, where the reader is, to after its `}`.
 *
 * @throws RequestError where the syntax of a statement is wrong, or the block has no end
 */
export function readBlock(reader: TokenReader): readonly Statement[] {
  const statements: Statement[] = [];
  const begin = reader.place();
  reader.expectMark('{');
  while (!reader.acceptMark('}')) {
    const place = reader.place();
    if (reader.kind === 'dotted') readDirective(reader, statements);
    else if (reader.isMark('{')) {
      const nested = reader.nested(() => readBlock(reader));
      statements.push({ kind: 'block', statements: nested, place });
    } else if (reader.isMark('@')) {
      const guard = readGuard(reader);
      const opcode = reader.expectKind('name', 'an instruction');
      statements.push(finishInstruction(reader, guard, opcode, place));
    } else if (!reader.acceptMark(';')) {
      if (reader.kind === 'end') reader.fail(`"}" for the "{" of line ${begin.line}`);
      const name = reader.expectName('an instruction, a label, a declaration or "}"');
      if (reader.acceptMark(':')) statements.push(finishLabel(reader, name, place));
      else statements.push(finishInstruction(reader, null, name, place));
    }
  }
  return statements;
}

/** Reads the numbers after a directive of a function, separated by commas; there may be none. */
export function readNumbers(reader: TokenReader): readonly number[] {
  const numbers: number[] = [];
  if (reader.kind !== 'number') return numbers;
  do numbers.push(readIntegerWithin(reader, 'a number', [0, mostLines]));
  while (reader.acceptMark(','));
  return numbers;
}
