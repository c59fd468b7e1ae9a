import { beginsConstant, readConstant } from './constant-expression.js';
import { type Constant, floatBits } from './constants.js';
import type { Initialiser, ScalarType } from './module.js';
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
export function readInitialiser(reader: TokenReader, type: ScalarType): Initialiser {
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
