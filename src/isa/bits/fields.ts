import type { LaneValue } from '../instruction.js';
import { ofBigInts } from '../integers/operators.js';
import { type Row, row } from '../row.js';
import { type IntegerType, integerTypes } from '../values/integer-type.js';
import {
  type Emit,
  shiftLeft as shiftLeftCode,
  shiftRight as shiftRightCode,
  type SourceValue,
  valueOf,
} from '../vectors/index.js';
import { type Expression, type FunctionBody, i32x4, v128 } from '../webassembly/index.js';
import { shiftLeft, shiftRight } from './shifts.js';

const { u32 } = integerTypes;
const common = {
  section: 'Integer Arithmetic Instructions',
  unit: 'alu',
  evidence: 'silicon',
} as const;

/** The lowest `length` bits set, 32 at most. */
function lowBits(length: number): number {
  return shiftLeft(1, length) - 1;
}

/** `length` bits of a from `position` on; bits beyond bit 31 are zeros. */
function extractField(a: number, position: number, length: number): number {
  return shiftRight(a, position & 0xff) & lowBits(length & 0xff);
}

/** As `extractField`, with bits beyond the field, or beyond bit 31, equal to its highest bit. */
function extractSignedField(a: number, position: number, length: number): number {
  const [from, bits] = [position & 0xff, length & 0xff];
  if (bits === 0) return 0;
  const sign = -((a >>> Math.min(from + bits - 1, 31)) & 1);
  const known = lowBits(Math.min(bits, Math.max(32 - from, 0)));
  return (shiftRight(a, from) & known) | (sign & ~known);
}

/** b with its bits from `position` on replaced by the lowest `length` bits of a. */
function insertField(a: number, b: number, position: number, length: number): number {
  const field = shiftLeft(lowBits(length & 0xff), position & 0xff);
  return (shiftLeft(a, position & 0xff) & field) | (b & ~field);
}

function mask(bits: bigint): bigint {
  return (1n << bits) - 1n;
}

/**
 * The position or length of a bit field: for 32 bits the low 8 bits count, as PTX says; for 64 bits, which the hardware
 * lacks, all bits count, and values beyond the register count as its end.
 */
function extent({ bits }: IntegerType, amount: bigint): bigint {
  if (bits === 32) return amount & 0xffn;
  return amount < BigInt(bits) ? amount : BigInt(bits);
}

/** `bfe` of 64 bits; bits beyond the type's are the sign, or 0. */
function extractWide(type: IntegerType) {
  return ofBigInts(type, [type, u32, u32], (a, position, count) => {
    const bits = extent(type, count);
    // The value as an integer has its sign repeated for ever above its highest bit.
    const field = (a >> extent(type, position)) & mask(bits);
    return type.isSigned && bits > 0n ? BigInt.asIntN(Number(bits), field) : field;
  });
}

/** `bfi` of 64 bits. */
function insertWide(type: IntegerType) {
  return ofBigInts(type, [type, type, u32, u32], (a, b, position, count) => {
    const from = extent(type, position);
    const field = mask(extent(type, count)) << from;
    return ((a << from) & field) | (b & ~field);
  });
}

/** The n-th set bit, from a position upwards or, for negative n, downwards. */
function findNth(bits: number, base: number, offset: number): number {
  // A number whose magnitude exceeds 32 bits gives 0 on an H200.
  if ((offset | 0) === -(2 ** 31)) return 0;
  const step = offset < 0 ? -1 : 1;
  let left = Math.max(Math.abs(offset | 0), 1);
  for (let position = base; position >= 0 && position < 32; position += step) {
    if (((bits >>> position) & 1) === 1 && --left === 0) return position;
    if ((offset | 0) === 0) break;
  }
  return 0xffffffff;
}

/** A mask of ones from a position on; amounts of 32 or more are clamped or wrapped around. */
function bitMask(position: number, count: number, isClamped: boolean): number {
  const from = BigInt(isClamped ? Math.min(position, 32) : position & 31);
  const bits = BigInt(isClamped ? Math.min(count, 32) : count & 31);
  return Number(BigInt.asUintN(32, mask(bits) << from));
}

/** The low bits of a, extended by the highest of these bits or by zeros. */
function extend(
  a: number,
  count: number,
  modes: { isClamped: boolean; isSigned: boolean },
): number {
  const bits = modes.isClamped ? Math.min(count, 32) : count & 31;
  const value = modes.isSigned ? BigInt.asIntN(bits, BigInt(a)) : BigInt.asUintN(bits, BigInt(a));
  return Number(BigInt.asUintN(32, value));
}

/** The lowest eight bits of the position or length of a bit field; the others do not count. */
function lowByte(body: FunctionBody, source: SourceValue): SourceValue {
  return valueOf(
    source,
    (bits) => bits & 0xff,
    (a) => body.keep(v128.and(a, i32x4.splat(0xff))),
  );
}

/** A word with the low `length` bits set; all bits from 32 on. */
function lowBitsCode(body: FunctionBody, length: SourceValue): SourceValue {
  return valueOf(
    length,
    (bits) => (bits < 32 ? 2 ** bits - 1 : -1),
    () => body.keep(i32x4.sub(shiftLeftCode(i32x4.splat(1), length), i32x4.splat(1))),
  );
}

/**
 * A signed bit field, as in `bfe.s32`: bits beyond the field, or beyond bit 31, are copies of the field's highest bit.
 */
function extractSigned(
  body: FunctionBody,
  a: Expression,
  from: SourceValue,
  length: SourceValue,
): Expression {
  const [position] = from.vectors;
  const [count] = length.vectors;
  const top = i32x4.minU(i32x4.sub(i32x4.add(position, count), i32x4.splat(1)), i32x4.splat(31));
  const toTop = { vectors: [body.keep(i32x4.sub(i32x4.splat(31), top))], constant: null };
  const sign = body.keep(i32x4.shrS(shiftLeftCode(a, toTop), 31));
  const left = i32x4.maxS(i32x4.sub(i32x4.splat(32), position), i32x4.splat(0));
  const known = { vectors: [body.keep(i32x4.minS(count, left))], constant: null };
  const field = v128.bitselect(
    shiftRightCode(body, a, from),
    sign,
    lowBitsCode(body, known).vectors[0],
  );
  return v128.andnot(field, i32x4.eq(count, i32x4.splat(0)));
}

function extractSignedConstant(a: Expression, position: number, length: number): Expression {
  if (length === 0) return i32x4.splat(0);
  if (position + length >= 32) return i32x4.shrS(a, Math.min(position, 31));
  return i32x4.shrS(i32x4.shl(a, 32 - position - length), 32 - length);
}

const extractCode: Readonly<Record<string, Emit>> = {
  u32: (body, { vectors: [a] }, position, length) => {
    const shifted = shiftRightCode(body, a, lowByte(body, position));
    return [[v128.and(shifted, lowBitsCode(body, lowByte(body, length)).vectors[0])]];
  },
  s32: (body, { vectors: [a] }, position, length) => {
    const [from, count] = [lowByte(body, position), lowByte(body, length)];
    return from.constant !== null && count.constant !== null
      ? [[extractSignedConstant(a, Number(from.constant), Number(count.constant))]]
      : [[extractSigned(body, a, from, count)]];
  },
};

const insertCode: Emit = (body, { vectors: [a] }, { vectors: [b] }, position, length) => {
  const from = lowByte(body, position);
  const field = shiftLeftCode(lowBitsCode(body, lowByte(body, length)).vectors[0], from);
  return [[v128.bitselect(shiftLeftCode(a, from), b, field)]];
};

type OfThree = (a: LaneValue, b: LaneValue, c: LaneValue) => LaneValue;

function extractEvaluate(type: string): OfThree {
  if (type === 'u32')
    return ((a: number, b: number, c: number) => extractField(a, b, c) >>> 0) as OfThree;
  if (type === 's32')
    return ((a: number, b: number, c: number) => extractSignedField(a, b, c) >>> 0) as OfThree;
  return extractWide(integerTypes[type as 'u64' | 's64']);
}

/**
 * Bit fields and masks, of 32 and 64 bits. Of 32 bits only the lowest eight bits of the position and the length of a field
 * count.
 */
export const fieldRows: readonly Row[] = [
  row({
    ...common,
    syntax: 'bfe.type d, a, b, c',
    alternatives: { type: ['.u32', '.s32', '.u64', '.s64'] },
    operands: { b: 'u32', c: 'u32' },
    evaluate: ({ type }) => extractEvaluate(type),
    emit: ({ type }) => extractCode[type] ?? null,
    isOfMachine: ({ type }) => type.endsWith('32'),
    meaning: 'confirmed',
  }),
  row({
    ...common,
    syntax: 'bfi.type d, a, b, c, e',
    alternatives: { type: ['.b32', '.b64'] },
    operands: { c: 'u32', e: 'u32' },
    evaluate: ({ type }) =>
      type === 'b64'
        ? insertWide(integerTypes.b64)
        : (a: number, b: number, position: number, length: number) =>
            insertField(a, b, position, length) >>> 0,
    emit: ({ type }) => (type === 'b32' ? insertCode : null),
    isOfMachine: ({ type }) => type.endsWith('32'),
    meaning: 'confirmed',
  }),
  row({
    ...common,
    syntax: 'fns.b32 d, mask, base, offset',
    evaluate: () => (bits: number, base: number, offset: number) => findNth(bits, base, offset | 0),
    meaning: 'loses',
  }),
  row({
    ...common,
    syntax: 'bmsk.mode.b32 d, a, b',
    alternatives: { mode: ['.clamp', '.wrap'] },
    evaluate:
      ({ mode }) =>
      (position: number, count: number) =>
        bitMask(position, count, mode === 'clamp'),
    meaning: 'loses',
  }),
  row({
    ...common,
    syntax: 'szext.mode.type d, a, b',
    alternatives: { mode: ['.clamp', '.wrap'], type: ['.u32', '.s32'] },
    evaluate:
      ({ mode, type }) =>
      (a: number, count: number) =>
        extend(a, count, { isClamped: mode === 'clamp', isSigned: type === 's32' }),
    meaning: 'loses',
  }),
];
