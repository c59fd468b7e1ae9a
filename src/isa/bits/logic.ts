import type { LaneValue } from '../instruction.js';
import { type Row, row } from '../row.js';
import { type Emit, low16, onEachVector, onWords, type VectorFunction } from '../vectors/index.js';
import { type Expression, i32x4, i64x2, v128 } from '../webassembly/index.js';

const common = {
  section: 'Logic and Shift Instructions',
  meaning: 'confirmed',
  unit: 'alu',
  evidence: 'silicon',
} as const;
const bitAlternatives = ['.b16', '.b32', '.b64', '.pred'] as const;

/** The machine has words and predicates. */
function isOfMachine({ type }: { readonly type: string }): boolean {
  return type === 'b32' || type === 'pred';
}

/** Operations on two operands: on words, on registers of 64 bits, and as code. */
const operations = {
  and: {
    ofWords: (a: number, b: number) => (a & b) >>> 0,
    ofBigInts: (a: bigint, b: bigint) => a & b,
    code: v128.and,
  },
  or: {
    ofWords: (a: number, b: number) => (a | b) >>> 0,
    ofBigInts: (a: bigint, b: bigint) => a | b,
    code: v128.or,
  },
  xor: {
    ofWords: (a: number, b: number) => (a ^ b) >>> 0,
    ofBigInts: (a: bigint, b: bigint) => a ^ b,
    code: v128.xor,
  },
} as const;

const binary = (['and', 'or', 'xor'] as const).map((opcode) => {
  const { ofWords, ofBigInts, code } = operations[opcode];
  return row({
    ...common,
    syntax: `${opcode}.type d, a, b`,
    alternatives: { type: bitAlternatives },
    evaluate: ({ type }) => (type === 'b64' ? ofBigInts : ofWords),
    emit: () => onEachVector((_, a, b) => code(a, b)),
    isOfMachine,
  });
});

function complement(type: string): (a: number) => number {
  if (type === 'pred') return (a) => (a ^ 1) >>> 0;
  return type === 'b16' ? (a) => ~a & 0xffff : (a) => ~a >>> 0;
}

function zeroTest(type: string): Emit {
  return type === 'b64'
    ? onEachVector((_, a) => i64x2.neg(i64x2.eq(a, i64x2.splat(0n))))
    : onWords((_, a) => i32x4.neg(i32x4.eq(a, i32x4.splat(0))));
}

const unary: readonly Row[] = [
  row({
    ...common,
    syntax: 'not.type d, a',
    alternatives: { type: bitAlternatives },
    evaluate: ({ type }) =>
      type === 'b64' ? (a: LaneValue) => BigInt.asUintN(64, ~BigInt(a)) : complement(type),
    emit: ({ type }) => {
      const code = (a: Expression): Expression => (type === 'b16' ? low16 : same)(v128.not(a));
      return onEachVector((_, a) => code(a));
    },
    isOfMachine,
  }),
  row({
    ...common,
    syntax: 'cnot.type d, a',
    alternatives: { type: ['.b16', '.b32', '.b64'] },
    evaluate: ({ type }) =>
      type === 'b64' ? (a: LaneValue) => (a === 0n ? 1n : 0n) : (a: LaneValue) => (a === 0 ? 1 : 0),
    emit: ({ type }) => zeroTest(type),
    meaning: 'decides',
  }),
];

function same(a: Expression): Expression {
  return a;
}

/** For every bit the entry of `table` at the number that the bits of a, b and c form. */
function lookUp(a: number, b: number, c: number, table: number): number {
  let result = 0;
  for (let entry = 0; entry < 8; entry++) {
    if (((table >>> entry) & 1) === 0) continue;
    result |= (entry & 4 ? a : ~a) & (entry & 2 ? b : ~b) & (entry & 1 ? c : ~c);
  }
  return result >>> 0;
}

/**
 * A function of three bits as an expression of words: a's bit chooses one of two functions of b and c, and in each of
 * these b's bit chooses one of two functions of c.
 *
 * @param table bit 4a + 2b + c is the function's value
 */
function ofThreeBits(table: number, a: Expression, b: Expression, c: Expression): Expression {
  const ofOne = (entries: number): Expression =>
    [i32x4.splat(0), v128.not(c), c, i32x4.splat(-1)][entries & 3];
  const ofTwo = (entries: number): Expression => {
    const [low, high] = [entries & 3, (entries >> 2) & 3];
    if (low === high) return ofOne(low);
    if (low === 0) return high === 3 ? b : v128.and(ofOne(high), b);
    if (high === 0) return low === 3 ? v128.not(b) : v128.andnot(ofOne(low), b);
    if ((low ^ high) === 3 && low !== 3) return v128.xor(low === 1 ? v128.not(c) : c, b);
    return v128.bitselect(ofOne(high), ofOne(low), b);
  };
  const [low, high] = [table & 0xf, (table >> 4) & 0xf];
  if (low === high) return ofTwo(low);
  if (low === 0) return high === 0xf ? a : v128.and(ofTwo(high), a);
  if (high === 0) return low === 0xf ? v128.not(a) : v128.andnot(ofTwo(low), a);
  if ((low ^ high) === 0xf) return v128.xor(ofTwo(low), a);
  return v128.bitselect(ofTwo(high), ofTwo(low), a);
}

/** `lop3` with its table in a register: the bit of each entry, spread over the word, where its three bits occur. */
const lookUpCode: VectorFunction = (body, a, b, c, table) => {
  let result: Expression = i32x4.splat(0);
  for (let entry = 0; entry < 8; entry++) {
    const spread = i32x4.shrS(i32x4.shl(table, 31 - entry), 31);
    const place = ofThreeBits(1 << entry, a, b, c);
    result = body.keep(v128.or(result, v128.and(place, spread)));
  }
  return result;
};

const lop3: Emit = (body, a, b, c, table) => {
  const [x, y, z] = [a.vectors[0], b.vectors[0], c.vectors[0]];
  return table.constant === null
    ? [[lookUpCode(body, x, y, z, table.vectors[0])]]
    : [[ofThreeBits(Number(table.constant & 0xffn), x, y, z)]];
};

/** `lop3`: for every bit the entry of a table; with a predicate as well whether any bit is set, combined with another. */
const tables: readonly Row[] = [
  row({
    ...common,
    syntax: 'lop3.b32 d, a, b, c, immLut',
    evaluate: () => lookUp,
    emit: () => lop3,
    isOfMachine: true,
  }),
  row({
    ...common,
    syntax: 'lop3.BoolOp.b32 d|p, a, b, c, immLut, {!}q',
    alternatives: { BoolOp: ['.or', '.and'] },
    evaluate:
      ({ BoolOp }) =>
      (a: number, b: number, c: number, table: number, predicate: number) => {
        const result = lookUp(a, b, c, table);
        const isAny = result === 0 ? 0 : 1;
        return [result, BoolOp === 'or' ? isAny | predicate : isAny & predicate];
      },
  }),
];

/** Logic of 16, 32 and 64 bits and of predicates, which are 0 or 1. */
export const logicRows: readonly Row[] = [...binary, ...unary, ...tables];
