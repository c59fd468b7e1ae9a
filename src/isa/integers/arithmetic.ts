import { pairsOf, ofHalves } from '../pairs.js';
import { type Row, row } from '../row.js';
import { integerTypes, saturate } from '../values/integer-type.js';
import {
  type Emit,
  low16,
  onEachVector,
  onWords,
  type Pairwise,
  signed16,
  unsigned64,
} from '../vectors/index.js';
import { type Expression, i32x4, i64x2, v128 } from '../webassembly/index.js';
import {
  integerAlternatives,
  integerTypeOf,
  isOfWords,
  ofBigInts,
  ofIntegers,
  onIntegers,
  type Operators,
} from './operators.js';

const { s32 } = integerTypes;
const signedAlternatives = ['.s16', '.s32', '.s64'] as const;
const common = {
  section: 'Integer Arithmetic Instructions',
  alternatives: { type: integerAlternatives },
  unit: 'alu',
  evidence: 'silicon',
} as const;

/** `.sat`: the nearest number of s32, by the sign of the first operand where the result has the wrong one. */
function saturatedCode(compute: Pairwise, isSecondWrong: Pairwise): Emit {
  return onWords((body, a, b) => {
    const result = body.keep(compute(a, b));
    const isWrong = i32x4.shrS(v128.and(v128.xor(a, result), isSecondWrong(b, result)), 31);
    const limit = v128.xor(i32x4.shrS(a, 31), i32x4.splat(0x7fffffff));
    return v128.bitselect(limit, result, isWrong);
  });
}

const add = row({
  ...common,
  syntax: 'add.type d, a, b',
  evaluate: ({ type }) => ofIntegers(integerTypeOf(type), (a, b) => a + b),
  emit: ({ type }) =>
    onIntegers(
      integerTypeOf(type),
      (_, a, b) => i32x4.add(a, b),
      (_, a, b) => i64x2.add(a, b),
    ),
  isOfMachine: isOfWords,
  meaning: 'confirmed',
});

const sums: readonly Row[] = [
  add,
  row({
    ...common,
    syntax: 'sub.type d, a, b',
    evaluate: ({ type }) => ofIntegers(integerTypeOf(type), (a, b) => a - b),
    emit: ({ type }) =>
      onIntegers(
        integerTypeOf(type),
        (_, a, b) => i32x4.sub(a, b),
        (_, a, b) => i64x2.sub(a, b),
      ),
    isOfMachine: isOfWords,
    meaning: 'confirmed',
  }),
  row({
    ...common,
    syntax: 'add.sat.s32 d, a, b',
    evaluate: () => ofBigInts(s32, [s32, s32], (a, b) => saturate(s32, a + b)),
    emit: () => saturatedCode(i32x4.add, v128.xor),
    meaning: 'is',
  }),
  row({
    ...common,
    syntax: 'sub.sat.s32 d, a, b',
    evaluate: () => ofBigInts(s32, [s32, s32], (a, b) => saturate(s32, a - b)),
    emit: () => saturatedCode(i32x4.sub, (b, result) => v128.not(v128.xor(b, result))),
    meaning: 'is',
  }),
  pairsOf(add, {
    syntax: 'add.types d, a, b',
    alternatives: { types: ['.u16x2', '.s16x2'] },
    evidence: 'silicon',
  }),
];

/** What tells `min` from `max`. */
const extremes = {
  min: {
    compute: (a: number, b: number) => (a < b ? a : b),
    signed: i32x4.minS,
    unsigned: i32x4.minU,
    wide: (a, b, isLarger) => v128.bitselect(b, a, isLarger),
  },
  max: {
    compute: (a: number, b: number) => (a > b ? a : b),
    signed: i32x4.maxS,
    unsigned: i32x4.maxU,
    wide: (a, b, isLarger) => v128.bitselect(a, b, isLarger),
  },
} as const satisfies Readonly<
  Record<
    string,
    {
      readonly compute: Operators;
      readonly signed: Pairwise;
      readonly unsigned: Pairwise;
      readonly wide: (a: Expression, b: Expression, isLarger: Expression) => Expression;
    }
  >
>;

function extremumCode(opcode: 'min' | 'max', type: string): Emit {
  const { signed, unsigned, wide } = extremes[opcode];
  const { bits, isSigned } = integerTypeOf(type);
  if (bits === 64) {
    const isLarger = isSigned ? i64x2.gtS : unsigned64(i64x2.gtS);
    return onEachVector((body, a, b) => wide(a, b, body.keep(isLarger(a, b))));
  }
  if (!isSigned) return onWords((_, a, b) => unsigned(a, b));
  return onWords((_, a, b) =>
    bits === 32 ? signed(a, b) : low16(signed(signed16(a), signed16(b))),
  );
}

const extrema = (['min', 'max'] as const).flatMap((opcode): Row[] => {
  const { compute } = extremes[opcode];
  const positive: Operators = (a, b) => Math.max(compute(a, b), 0);
  const single = row({
    ...common,
    syntax: `${opcode}.type d, a, b`,
    evaluate: ({ type }) => ofIntegers(integerTypeOf(type), compute),
    emit: ({ type }) => extremumCode(opcode, type),
    isOfMachine: isOfWords,
    meaning: 'chooses',
  });
  return [
    single,
    pairsOf(single, {
      syntax: `${opcode}.types d, a, b`,
      alternatives: { types: ['.u16x2', '.s16x2'] },
      evidence: 'silicon',
    }),
    row({
      ...common,
      syntax: `${opcode}.relu.type d, a, b`,
      alternatives: { type: ['.s16x2', '.s32'] },
      evaluate: ({ type }) =>
        type === 's32'
          ? ofIntegers(s32, positive)
          : ofHalves(ofIntegers(integerTypes.s16, positive) as (...halves: number[]) => number),
      meaning: 'chooses',
    }),
  ];
});

const ofOne: readonly Row[] = [
  row({
    ...common,
    syntax: 'neg.type d, a',
    alternatives: { type: signedAlternatives },
    evaluate: ({ type }) => ofIntegers(integerTypeOf(type), (a) => -a),
    emit: ({ type }) =>
      onIntegers(
        integerTypeOf(type),
        (_, a) => i32x4.neg(a),
        (_, a) => i64x2.neg(a),
      ),
    isOfMachine: isOfWords,
    meaning: 'is',
  }),
  row({
    ...common,
    syntax: 'abs.type d, a',
    alternatives: { type: signedAlternatives },
    evaluate: ({ type }) => ofIntegers(integerTypeOf(type), (a) => (a < 0 ? -a : a)),
    emit: ({ type }) =>
      onIntegers(
        integerTypeOf(type),
        (_, a) => i32x4.abs(type === 's16' ? signed16(a) : a),
        (_, a) => i64x2.abs(a),
      ),
    isOfMachine: isOfWords,
    meaning: 'is',
  }),
  row({
    ...common,
    syntax: 'sad.type d, a, b, c',
    evaluate: ({ type }) =>
      ofIntegers(integerTypeOf(type), (a, b, c) => c + (a < b ? b - a : a - b)),
    emit: ({ type }) => {
      const { bits, isSigned } = integerTypeOf(type);
      if (bits !== 32) return null;
      const [larger, smaller] = isSigned ? [i32x4.maxS, i32x4.minS] : [i32x4.maxU, i32x4.minU];
      return onWords((_, a, b, c) => i32x4.add(c, i32x4.sub(larger(a, b), smaller(a, b))));
    },
    meaning: 'is',
  }),
];

/**
 * Integers of 16, 32 and 64 bits: sums, extrema, signs, absolute differences; results wrap around except with `.sat`.
 */
export const integerRows: readonly Row[] = [...sums, ...extrema, ...ofOne];
