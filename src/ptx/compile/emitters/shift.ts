import { low16, signed16 } from '../../../isa/vectors/index.js';
import { type Expression, type FunctionBody, i32x4, v128 } from '../../../isa/webassembly/index.js';
import type { Emitter, SourceValue } from './emitter.js';
import {
  shiftLeft,
  shiftRight,
  shiftRightSigned,
  shiftWide,
  shiftWideSigned,
} from './variable-shift.js';

type WordShift = (body: FunctionBody, a: Expression, n: SourceValue) => Expression;

function ofWords(name: string, compute: WordShift): Emitter {
  return { name, sources: 2, emit: (body, a, n) => [[compute(body, a.vectors[0], n)]] };
}

const left: readonly Emitter[] = [
  ofWords('shl.b16', (_, a, n) => low16(shiftLeft(a, n))),
  ofWords('shl.b32', (_, a, n) => shiftLeft(a, n)),
  { name: 'shl.b64', sources: 2, emit: (body, a, n) => [shiftWide(body, 'shl', a, n)] },
];

const right: readonly Emitter[] = [
  ...['b', 'u'].flatMap((kind): Emitter[] => [
    ofWords(`shr.${kind}16`, shiftRight),
    ofWords(`shr.${kind}32`, shiftRight),
    {
      name: `shr.${kind}64`,
      sources: 2,
      emit: (body, a, n) => [shiftWide(body, 'shrU', a, n)],
    },
  ]),
  ofWords('shr.s16', (body, a, n) => low16(shiftRightSigned(body, body.keep(signed16(a)), n))),
  ofWords('shr.s32', shiftRightSigned),
  { name: 'shr.s64', sources: 2, emit: (body, a, n) => [shiftWideSigned(body, a, n)] },
];

/** The value of a function of a source: a constant with the same bits in all lanes, or a computed word. */
function valueOf(
  source: SourceValue,
  ofConstant: (bits: number) => number,
  ofWord: (a: Expression) => Expression,
): SourceValue {
  if (source.constant === null) return { vectors: [ofWord(source.vectors[0])], constant: null };
  const bits = ofConstant(Number(source.constant)) >>> 0;
  return { vectors: [i32x4.splat(bits)], constant: BigInt(bits) };
}

/** The amount of a funnel shift, and 32 minus the amount. */
function funnelAmounts(
  body: FunctionBody,
  mode: 'wrap' | 'clamp',
  n: SourceValue,
): readonly [SourceValue, SourceValue] {
  const amount =
    mode === 'wrap'
      ? valueOf(
          n,
          (bits) => bits & 31,
          (a) => body.keep(v128.and(a, i32x4.splat(31))),
        )
      : valueOf(
          n,
          (bits) => Math.min(bits, 32),
          (a) => body.keep(i32x4.minU(a, i32x4.splat(32))),
        );
  const rest = valueOf(
    amount,
    (bits) => 32 - bits,
    (a) => body.keep(i32x4.sub(i32x4.splat(32), a)),
  );
  return [amount, rest];
}

/** `shf`: 32 bits of {b, a}, shifted. */
const funnels: readonly Emitter[] = (['wrap', 'clamp'] as const).flatMap((mode): Emitter[] => [
  {
    name: `shf.l.${mode}.b32`,
    sources: 3,
    emit: (body, { vectors: [a] }, { vectors: [b] }, n) => {
      const [amount, rest] = funnelAmounts(body, mode, n);
      return [[v128.or(shiftLeft(b, amount), shiftRight(body, a, rest))]];
    },
  },
  {
    name: `shf.r.${mode}.b32`,
    sources: 3,
    emit: (body, { vectors: [a] }, { vectors: [b] }, n) => {
      const [amount, rest] = funnelAmounts(body, mode, n);
      return [[v128.or(shiftLeft(b, rest), shiftRight(body, a, amount))]];
    },
  },
]);

/** The lowest eight bits of the position or length of a bit field; the others do not count. */
function lowByte(body: FunctionBody, source: SourceValue): SourceValue {
  return valueOf(
    source,
    (bits) => bits & 0xff,
    (a) => body.keep(v128.and(a, i32x4.splat(0xff))),
  );
}

/** A word with the low `length` bits set; all bits from 32 on. */
function lowBits(body: FunctionBody, length: SourceValue): SourceValue {
  return valueOf(
    length,
    (bits) => (bits < 32 ? 2 ** bits - 1 : -1),
    () => body.keep(i32x4.sub(shiftLeft(i32x4.splat(1), length), i32x4.splat(1))),
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
  const sign = body.keep(i32x4.shrS(shiftLeft(a, toTop), 31));
  const left = i32x4.maxS(i32x4.sub(i32x4.splat(32), position), i32x4.splat(0));
  const known = { vectors: [body.keep(i32x4.minS(count, left))], constant: null };
  const field = v128.bitselect(shiftRight(body, a, from), sign, lowBits(body, known).vectors[0]);
  return v128.andnot(field, i32x4.eq(count, i32x4.splat(0)));
}

function extractSignedConstant(a: Expression, position: number, length: number): Expression {
  if (length === 0) return i32x4.splat(0);
  if (position + length >= 32) return i32x4.shrS(a, Math.min(position, 31));
  return i32x4.shrS(i32x4.shl(a, 32 - position - length), 32 - length);
}

const fields: readonly Emitter[] = [
  {
    name: 'bfe.u32',
    sources: 3,
    emit: (body, { vectors: [a] }, position, length) => {
      const shifted = shiftRight(body, a, lowByte(body, position));
      return [[v128.and(shifted, lowBits(body, lowByte(body, length)).vectors[0])]];
    },
  },
  {
    name: 'bfe.s32',
    sources: 3,
    emit: (body, { vectors: [a] }, position, length) => {
      const [from, count] = [lowByte(body, position), lowByte(body, length)];
      return from.constant !== null && count.constant !== null
        ? [[extractSignedConstant(a, Number(from.constant), Number(count.constant))]]
        : [[extractSigned(body, a, from, count)]];
    },
  },
  {
    name: 'bfi.b32',
    sources: 4,
    emit: (body, { vectors: [a] }, { vectors: [b] }, position, length) => {
      const from = lowByte(body, position);
      const field = shiftLeft(lowBits(body, lowByte(body, length)).vectors[0], from);
      return [[v128.bitselect(shiftLeft(a, from), b, field)]];
    },
  },
];

/** Shifts and bit fields. */
export const shiftEmitters: readonly Emitter[] = [...left, ...right, ...funnels, ...fields];
