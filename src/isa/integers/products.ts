import { type Row, row } from '../row.js';
import { type IntegerType, integerTypes, saturate } from '../values/integer-type.js';
import {
  type Emit,
  highProduct,
  highProduct64,
  low16,
  onWords,
  type Pairwise,
  signed16,
} from '../vectors/index.js';
import { i32x4, i64x2 } from '../webassembly/index.js';
import {
  integerAlternatives,
  integerTypeOf,
  isOfWords,
  ofBigInts,
  ofIntegers,
  onIntegers,
} from './operators.js';

const { s32, u32, u64, s64 } = integerTypes;
const common = {
  section: 'Integer Arithmetic Instructions',
  alternatives: { type: integerAlternatives },
  meaning: 'is',
  unit: 'fma',
  evidence: 'silicon',
} as const;

/** The high half of a product. */
function highOf(type: IntegerType, a: bigint, b: bigint): bigint {
  return (a * b) >> BigInt(type.bits);
}

/** The high 32 bits of a product of words that are signed or not, without bigints of 64 bits in between. */
function highOfWords(isSigned: boolean, a: number, b: number): number {
  const [x, y] = isSigned ? [a | 0, b | 0] : [a, b];
  return Number(BigInt.asUintN(32, (BigInt(x) * BigInt(y)) >> 32n));
}

function product16({ isSigned }: IntegerType): Pairwise {
  return isSigned ? (a, b) => i32x4.mul(signed16(a), signed16(b)) : (a, b) => i32x4.mul(a, b);
}

function highCode(type: IntegerType): Emit {
  const { bits, isSigned } = type;
  if (bits === 64) return (body, a, b) => [highProduct64(isSigned, body, a.vectors, b.vectors)];
  if (bits === 32) return onWords((_, a, b) => highProduct(isSigned)(a, b));
  return onWords((_, a, b) => {
    const product = product16(type)(a, b);
    return isSigned ? low16(i32x4.shrS(product, 16)) : i32x4.shrU(product, 16);
  });
}

function highSumCode({ bits, isSigned }: IntegerType): Emit | null {
  if (bits === 64)
    return (body, a, b, c) => [
      highProduct64(isSigned, body, a.vectors, b.vectors).map((vector, i) =>
        i64x2.add(vector, c.vectors[i]),
      ),
    ];
  if (bits === 16) return null;
  return onWords((_, a, b, c) => i32x4.add(highProduct(isSigned)(a, b), c));
}

const halves: readonly Row[] = [
  row({
    ...common,
    syntax: 'mul.lo.type d, a, b',
    evaluate: ({ type }) => ofIntegers(integerTypeOf(type), (a, b) => a * b, Math.imul),
    emit: ({ type }) =>
      onIntegers(
        integerTypeOf(type),
        (_, a, b) => i32x4.mul(a, b),
        (_, a, b) => i64x2.mul(a, b),
      ),
    isOfMachine: isOfWords,
  }),
  row({
    ...common,
    syntax: 'mad.lo.type d, a, b, c',
    evaluate: ({ type }) =>
      ofIntegers(
        integerTypeOf(type),
        (a, b, c) => a * b + c,
        (a, b, c) => Math.imul(a, b) + c,
      ),
    emit: ({ type }) =>
      onIntegers(
        integerTypeOf(type),
        (_, a, b, c) => i32x4.add(i32x4.mul(a, b), c),
        (_, a, b, c) => i64x2.add(i64x2.mul(a, b), c),
      ),
    isOfMachine: isOfWords,
  }),
  row({
    ...common,
    syntax: 'mul.hi.type d, a, b',
    evaluate: ({ type: name }) => {
      const type = integerTypeOf(name);
      return type.bits === 32
        ? (a: number, b: number) => highOfWords(type.isSigned, a, b)
        : ofBigInts(type, [type, type], (a, b) => highOf(type, a, b));
    },
    emit: ({ type }) => highCode(integerTypeOf(type)),
    isOfMachine: isOfWords,
  }),
  row({
    ...common,
    syntax: 'mad.hi.type d, a, b, c',
    evaluate: ({ type: name }) => {
      const type = integerTypeOf(name);
      return type.bits === 32
        ? (a: number, b: number, c: number) => (highOfWords(type.isSigned, a, b) + c) >>> 0
        : ofBigInts(type, [type, type, type], (a, b, c) => highOf(type, a, b) + c);
    },
    emit: ({ type }) => highSumCode(integerTypeOf(type)),
    isOfMachine: isOfWords,
  }),
  row({
    ...common,
    syntax: 'mad.hi.sat.s32 d, a, b, c',
    evaluate: () =>
      ofBigInts(s32, [s32, s32, s32], (a, b, c) => saturate(s32, highOf(s32, a, b) + c)),
  }),
];

const wider: Readonly<Record<string, IntegerType>> = { u16: u32, s16: s32, u32: u64, s32: s64 };
const narrowAlternatives = { type: ['.u16', '.u32', '.s16', '.s32'] } as const;

function wideParts({ isSigned }: IntegerType): readonly [Pairwise, Pairwise] {
  return isSigned
    ? [i64x2.extmulLowI32x4S, i64x2.extmulHighI32x4S]
    : [i64x2.extmulLowI32x4U, i64x2.extmulHighI32x4U];
}

/** Products of twice the width. */
const wide: readonly Row[] = [
  row({
    ...common,
    syntax: 'mul.wide.type d, a, b',
    alternatives: narrowAlternatives,
    operands: ({ type }) => ({ d: wider[type].name }),
    evaluate: ({ type: name }) => {
      const type = integerTypeOf(name);
      return ofBigInts(wider[name], [type, type], (a, b) => a * b);
    },
    emit: ({ type: name }) => {
      const type = integerTypeOf(name);
      const [low, high] = wideParts(type);
      return type.bits === 16
        ? onWords((_, a, b) => product16(type)(a, b))
        : (_, { vectors: [a] }, { vectors: [b] }) => [[low(a, b), high(a, b)]];
    },
  }),
  row({
    ...common,
    syntax: 'mad.wide.type d, a, b, c',
    alternatives: narrowAlternatives,
    operands: ({ type }) => ({ d: wider[type].name, c: wider[type].name }),
    evaluate: ({ type: name }) => {
      const type = integerTypeOf(name);
      return ofBigInts(wider[name], [type, type, wider[name]], (a, b, c) => a * b + c);
    },
    emit: ({ type: name }) => {
      const type = integerTypeOf(name);
      const [low, high] = wideParts(type);
      return type.bits === 16
        ? onWords((_, a, b, c) => i32x4.add(product16(type)(a, b), c))
        : (_, { vectors: [a] }, { vectors: [b] }, { vectors: [first, second] }) => [
            [i64x2.add(low(a, b), first), i64x2.add(high(a, b), second)],
          ];
    },
  }),
];

/** The product of the low 24 bits: `.lo` is the low and `.hi` the high 32 bits of its 48. */
function shortProduct({ isSigned }: IntegerType, part: string, a: bigint, b: bigint): bigint {
  const short = (integer: bigint): bigint =>
    isSigned ? BigInt.asIntN(24, integer) : BigInt.asUintN(24, integer);
  return (short(a) * short(b)) >> (part === 'hi' ? 16n : 0n);
}

const shortAlternatives = { part: ['.lo', '.hi'], type: ['.u32', '.s32'] } as const;
const short: readonly Row[] = [
  row({
    ...common,
    syntax: 'mul24.part.type d, a, b',
    alternatives: shortAlternatives,
    evaluate: ({ part, type: name }) => {
      const type = integerTypeOf(name);
      return ofBigInts(type, [type, type], (a, b) => shortProduct(type, part, a, b));
    },
  }),
  row({
    ...common,
    syntax: 'mad24.part.type d, a, b, c',
    alternatives: shortAlternatives,
    evaluate: ({ part, type: name }) => {
      const type = integerTypeOf(name);
      return ofBigInts(type, [type, type, type], (a, b, c) => shortProduct(type, part, a, b) + c);
    },
  }),
  row({
    ...common,
    syntax: 'mad24.hi.sat.s32 d, a, b, c',
    evaluate: () =>
      ofBigInts(s32, [s32, s32, s32], (a, b, c) =>
        saturate(s32, shortProduct(s32, 'hi', a, b) + c),
      ),
  }),
];

/**
 * Products of integers: their halves, also with a sum, products of twice the width and of 24 bits. Results wrap around except with `.sat`.
 */
export const productRows: readonly Row[] = [...halves, ...wide, ...short];
