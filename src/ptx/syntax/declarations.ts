import { beginsConstant, readConstant, readIntegerWithin } from './constant-expression.js';
import { floatBits, type Constant } from './constants.js';
import type { Initialiser, ScalarType, StateSpace, VariableDeclaration } from './module.js';
import { readOffset } from './operands.js';
import type { TokenReader } from './token-reader.js';

/** Number of bits of the types for which an initialiser may give numbers. */
const typeBits: ReadonlyMap<ScalarType, number> = new Map<ScalarType, number>([
  ['pred', 1],
  ...(['b8', 'u8', 's8'] as const).map((type) => [type, 8] as const),
  ...(['b16', 'u16', 's16', 'f16', 'bf16'] as const).map((type) => [type, 16] as const),
  ...(['b32', 'u32', 's32', 'f32', 'f16x2', 'bf16x2'] as const).map((type) => [type, 32] as const),
  ...(['b64', 'u64', 's64', 'f64'] as const).map((type) => [type, 64] as const),
  ['b128', 128],
]);

/** The bits of a number in a variable of a type; null where the type has no such number. */
function bitsOf(constant: Constant, type: ScalarType): bigint | null {
  const width = typeBits.get(type);
  if (width === undefined) return null;
  if (type === 'f32' || type === 'f64')
    return constant.kind === 'integer' ? null : floatBits(constant, type);
  if (constant.kind === 'integer')
    return type.startsWith('f') || type.startsWith('bf')
      ? null
      : BigInt.asUintN(width, constant.value);
  const isUntyped = type.startsWith('b') && !type.startsWith('bf');
  return isUntyped && width === (constant.kind === 'f32' ? 32 : 64) ? constant.bits : null;
}

/** Reads `name`, `name+4`, `generic(name)`, with the `+4` inside or after the parentheses. */
function readAddress(reader: TokenReader, mask: bigint | null): Initialiser {
  const word = reader.expectName('the name of a variable or function');
  const isGeneric = word === 'generic' && reader.acceptMark('(');
  const name = isGeneric ? reader.expectName('the name of a variable') : word;
  let offset = readOffset(reader);
  if (isGeneric) {
    reader.expectMark(')');
    offset += readOffset(reader);
  }
  return { kind: 'address', name, offset, isGeneric, mask };
}

/** Reads a number, or `0xff(name)`. */
function readNumber(reader: TokenReader, type: ScalarType): Initialiser {
  const place = reader.place();
  const constant = readConstant(reader);
  if (constant.kind === 'integer' && reader.acceptMark('(')) {
    const address = readAddress(reader, constant.value);
    reader.expectMark(')');
    return address;
  }
  const bits = bitsOf(constant, type);
  if (bits !== null) return { kind: 'bits', bits };
  const found = constant.kind === 'integer' ? 'an integer' : 'a floating-point number';
  throw reader.error(`a variable of type .${type} begins with no such number as ${found}`, place);
}

/**
 * Reads the text after `=` in a declaration (PTX ISA, "Initializers").
 *
 * @returns numbers as bits of the type: integers cut to its width, decimals rounded to nearest
 * @throws RequestError where the syntax is wrong, or a number does not belong to the type
 */
function readInitialiser(reader: TokenReader, type: ScalarType): Initialiser {
  if (reader.acceptMark('{')) {
    const elements: Initialiser[] = [];
    if (reader.acceptMark('}')) return { kind: 'list', elements };
    do elements.push(reader.nested(() => readInitialiser(reader, type)));
    while (reader.acceptMark(','));
    if (!reader.acceptMark('}')) reader.fail('"," or "}"');
    return { kind: 'list', elements };
  }
  if (beginsConstant(reader)) return readNumber(reader, type);
  if (reader.kind !== 'name') reader.fail('a number, the name of a variable, or "{"');
  return readAddress(reader, null);
}

const spaces: ReadonlySet<string> = new Set<StateSpace>([
  ...(['reg', 'const', 'global', 'local', 'param', 'shared'] as const),
]);
const scalarTypes: ReadonlySet<string> = new Set<ScalarType>([
  ...(['pred', 'b8', 'b16', 'b32', 'b64', 'b128', 'u8', 'u16', 'u32', 'u64'] as const),
  ...(['s8', 's16', 's32', 's64', 'f16', 'f16x2', 'bf16', 'bf16x2', 'f32', 'f64'] as const),
  ...(['texref', 'samplerref', 'surfref'] as const),
]);
const vectors: ReadonlyMap<string, VariableDeclaration['vector']> = new Map([
  ['v2', 2],
  ['v4', 4],
  ['v8', 8],
]);
const linkages: ReadonlySet<string> = new Set(['extern', 'visible', 'weak', 'common']);

/** Maximum number of registers of one name, and maximum alignment in bytes: more than any machine has. */
const mostRegisters = 2 ** 24;
const mostAlignment = 2 ** 20;
/** Maximum number of elements of one dimension: the size of an address space. */
const mostElements = 2 ** 48;

/** Whether the token is a state space with which a declaration begins. */
export function beginsDeclaration(reader: TokenReader): boolean {
  return reader.kind === 'dotted' && spaces.has(reader.text);
}

/** Reads the linkage at the token; null for none. */
export function readLinkage(reader: TokenReader): VariableDeclaration['linkage'] {
  if (reader.kind !== 'dotted' || !linkages.has(reader.text)) return null;
  const linkage = reader.text as VariableDeclaration['linkage'];
  reader.advance();
  return linkage;
}

/** Skips `.attribute(…)`: names for unified and managed memory do not matter to a kernel. */
export function skipAttribute(reader: TokenReader): void {
  reader.advance();
  reader.expectMark('(');
  for (let open = 1; open > 0; reader.advance()) {
    if (reader.isMark('(')) open++;
    else if (reader.isMark(')')) open--;
    else if (reader.kind === 'end') reader.fail('")" that ends ".attribute("');
  }
}

/** The part of a declaration before its names. */
type Head = Pick<
  VariableDeclaration,
  'space' | 'type' | 'vector' | 'alignment' | 'pointer' | 'linkage'
>;

function readAlignment(reader: TokenReader): number {
  const place = reader.place();
  const alignment = readIntegerWithin(reader, 'an alignment in bytes', [1, mostAlignment]);
  if ((alignment & (alignment - 1)) === 0) return alignment;
  throw reader.error(`an alignment is a power of two, and ${alignment} is none`, place);
}

/** Reads the text after `.ptr`: a space and an alignment, both optional. */
function readPointer(reader: TokenReader): VariableDeclaration['pointer'] {
  const space = beginsDeclaration(reader) ? (reader.text as StateSpace) : null;
  if (space !== null) reader.advance();
  if (!reader.isDotted('align')) return { space, alignment: null };
  reader.advance();
  return { space, alignment: readAlignment(reader) };
}

/** Reads `.shared .align 16 .v2 .f32`, with the parts after the space in any order. */
function readHead(reader: TokenReader, linkage: VariableDeclaration['linkage']): Head {
  if (!beginsDeclaration(reader)) reader.fail('a state space (.reg, .param, .shared, …)');
  const space = reader.text as StateSpace;
  let type: ScalarType | null = null;
  let vector: VariableDeclaration['vector'] = 1;
  let alignment: number | null = null;
  let pointer: VariableDeclaration['pointer'] = null;
  reader.advance();
  while (reader.kind === 'dotted') {
    const word = reader.text;
    const elements = vectors.get(word);
    if (word === 'attribute') skipAttribute(reader);
    else if (word === 'align') {
      reader.advance();
      alignment = readAlignment(reader);
    } else if (word === 'ptr') {
      reader.advance();
      pointer = readPointer(reader);
    } else if (elements !== undefined) {
      vector = elements;
      reader.advance();
    } else if (scalarTypes.has(word) && type === null) {
      type = word as ScalarType;
      reader.advance();
    } else reader.fail(type === null ? 'a type (.b32, .f32, .pred, …)' : 'a name');
  }
  if (type === null) reader.fail('a type (.b32, .f32, .pred, …)');
  return { space, type, vector, alignment, pointer, linkage };
}

/** Reads `[4][]`. */
function readDimensions(reader: TokenReader): readonly (number | null)[] {
  const dimensions: (number | null)[] = [];
  while (reader.acceptMark('[')) {
    const isOpen = reader.isMark(']');
    dimensions.push(
      isOpen ? null : readIntegerWithin(reader, 'a number of elements', [0, mostElements]),
    );
    reader.expectMark(']');
  }
  return dimensions;
}

/** Reads `<10>`. */
function readCount(reader: TokenReader): number | null {
  if (!reader.acceptMark('<')) return null;
  const place = reader.place();
  const count = Number(reader.expectKind('number', 'a number of registers'));
  if (!Number.isInteger(count) || count > mostRegisters)
    throw reader.error(`expected a number of registers up to ${mostRegisters}`, place);
  reader.expectMark('>');
  return count;
}

/** Reads the rest of a variable after its name. */
function readVariable(reader: TokenReader, head: Head, name: string): VariableDeclaration {
  const place = reader.place();
  if (name === '') name = reader.expectName('a name');
  const count = readCount(reader);
  const dimensions = count === null ? readDimensions(reader) : [];
  const initialiser =
    head.space !== 'param' && reader.acceptMark('=') ? readInitialiser(reader, head.type) : null;
  return { kind: 'variable', name, ...head, dimensions, count, initialiser, place };
}

/**
 * Reads a declaration, its `;` included: as many variables as it names.
 *
 * @param linkage the linkage before it
 * @throws RequestError where its syntax is wrong
 */
export function readDeclaration(
  reader: TokenReader,
  linkage: VariableDeclaration['linkage'],
): readonly VariableDeclaration[] {
  const head = readHead(reader, linkage);
  const variables: VariableDeclaration[] = [];
  do variables.push(readVariable(reader, head, ''));
  while (reader.acceptMark(','));
  if (!reader.acceptMark(';')) reader.fail('"," or ";" at the end of the declaration');
  return variables;
}

/**
 * Reads parameters in parentheses, or the results of a function.
 *
 * @returns none where there are no parentheses; a parameter without a name is called `_`
 * @throws RequestError where their syntax is wrong
 */
export function readParameters(reader: TokenReader): readonly VariableDeclaration[] {
  const parameters: VariableDeclaration[] = [];
  if (!reader.acceptMark('(') || reader.acceptMark(')')) return parameters;
  do {
    const head = readHead(reader, null);
    const isNamed = reader.kind === 'name' || reader.kind === 'text';
    parameters.push(readVariable(reader, head, isNamed ? '' : '_'));
  } while (reader.acceptMark(','));
  if (!reader.acceptMark(')')) reader.fail('"," or ")" at the end of the parameters');
  return parameters;
}
