import { float32Of } from '../arith/index.js';
import type { LaneValue } from './instruction.js';
import { type Row, row } from './row.js';
import { flushed, type FloatType, floatTypes } from './values/float-type.js';
import { integerOf, integerTypes } from './values/integer-type.js';
import { comparisonCode, type Emit } from './vectors/index.js';
import { type Expression, v128 } from './webassembly/index.js';

/** Whether a comparison holds, of numbers or integers. */
type Comparison = (a: number | bigint, b: number | bigint) => boolean;

const isUnordered: Comparison = (a, b) => a !== a || b !== b;

const equality: Readonly<Record<string, Comparison>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
};
const ordered: Readonly<Record<string, Comparison>> = {
  ...equality,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
};
/** With PTX's other names for the order of unsigned integers. */
const unsigned: Readonly<Record<string, Comparison>> = {
  ...ordered,
  lo: ordered.lt,
  ls: ordered.le,
  hi: ordered.gt,
  hs: ordered.ge,
};
const ofNumbers: Readonly<Record<string, Comparison>> = {
  ...ordered,
  ne: (a, b) => a < b || a > b,
  num: (a, b) => !isUnordered(a, b),
};
/** False where an operand is NaN, except for those that end in `u`, and `nan`. Source: PTX ISA, "Floating Point Comparisons". */
const floating: Readonly<Record<string, Comparison>> = {
  ...ofNumbers,
  ...Object.fromEntries(
    ['eq', 'ne', 'lt', 'le', 'gt', 'ge'].map((name): [string, Comparison] => [
      `${name}u`,
      (a, b) => isUnordered(a, b) || ofNumbers[name](a, b),
    ]),
  ),
  nan: isUnordered,
};

/** Types that are compared alike. */
interface ComparedTypes {
  /** The part of a name that says the type: with `{.ftz}` where subnormals may count as zeros. */
  readonly name: string;
  readonly alternatives: Readonly<Record<string, readonly string[]>>;
  readonly comparisons: Readonly<Record<string, Comparison>>;
  /** Results that `set` may have; those with `.ftz` are never bf16. Source: PTX ISA, `set`, and what ptxas accepts. */
  readonly setResults: readonly string[];
  /** Half precision has `p|q` only in pairs, where p is for the low halves and q for the high ones. */
  readonly predicates: 'p' | 'p[|q]' | 'p|q';
}

const setResults = ['.u32', '.s32', '.f32', '.f16', '.bf16'] as const;
const halfSetResults = ['.u32', '.s32', '.u16', '.s16', '.f16', '.bf16'] as const;

function integers(kind: string, comparisons: ComparedTypes['comparisons']): ComparedTypes {
  const alternatives = { [`${kind}type`]: [16, 32, 64].map((bits) => `.${kind}${bits}`) };
  const name = `.${kind}type`;
  return { name, alternatives, comparisons, setResults, predicates: 'p[|q]' };
}

function floats(
  name: string,
  results: readonly string[],
  predicates: ComparedTypes['predicates'],
): ComparedTypes {
  return { name, alternatives: {}, comparisons: floating, setResults: results, predicates };
}

const comparedTypes: readonly ComparedTypes[] = [
  integers('b', equality),
  integers('s', ordered),
  integers('u', unsigned),
  floats('{.ftz}.f32', setResults, 'p[|q]'),
  floats('.f64', setResults, 'p[|q]'),
  floats('{.ftz}.f16', halfSetResults, 'p'),
  floats('.bf16', ['.u32', '.s32', '.u16', '.s16', '.bf16'], 'p'),
  floats('{.ftz}.f16x2', ['.f16x2'], 'p|q'),
  floats('.bf16x2', ['.bf16x2'], 'p|q'),
];

/** The number that a register's bits stand for. */
function valueOf(type: string, flushes: boolean): (bits: LaneValue) => number | bigint {
  const float = floatTypes[type as FloatType['name']];
  if (float !== undefined) {
    const numberOf = type === 'f32' ? (float32Of as FloatType['numberOf']) : float.numberOf;
    return flushes ? (bits) => flushed(float, numberOf(bits)) : numberOf;
  }
  const integer = integerTypes[type as keyof typeof integerTypes];
  if (integer.bits === 64) return (bits) => integerOf(integer, bits);
  if (!integer.isSigned) return (bits) => bits;
  const shift = 32 - integer.bits;
  return (bits) => (Number(bits) << shift) >> shift;
}

/** Combinations of the result with a third operand, a predicate. */
const combinations: Readonly<Record<string, (result: number, predicate: number) => number>> = {
  '': (result) => result,
  and: (result, predicate) => result & predicate,
  or: (result, predicate) => result | predicate,
  xor: (result, predicate) => result ^ predicate,
};
const combinationCode: Readonly<Record<string, (a: Expression, b: Expression) => Expression>> = {
  and: v128.and,
  or: v128.or,
  xor: v128.xor,
};

/** The parts of the chosen modifiers that say what is compared, and how. */
interface Asked {
  readonly comparison: string;
  readonly combination: string;
  readonly type: string;
  readonly flushes: boolean;
}

/** 0 or 1 for two operands. */
function compared({ comparison, type, flushes }: Asked, comparisons: ComparedTypes['comparisons']) {
  const holds = comparisons[comparison];
  const value = valueOf(type, flushes);
  return (a: LaneValue, b: LaneValue): number => (holds(value(a), value(b)) ? 1 : 0);
}

type Evaluate = (a: LaneValue, b: LaneValue, c: number) => LaneValue | number[];

function halvesOf(value: LaneValue): readonly [number, number] {
  return [Number(value) & 0xffff, Number(value) >>> 16];
}

function setpEvaluate(asked: Asked, { comparisons, predicates }: ComparedTypes, results: number) {
  const combine = combinations[asked.combination];
  const compare = compared(asked, comparisons);
  const evaluate: Evaluate =
    predicates === 'p|q'
      ? (a, b, c) => {
          const [x, y] = [halvesOf(a), halvesOf(b)];
          return [combine(compare(x[0], y[0]), c), combine(compare(x[1], y[1]), c)];
        }
      : results === 1
        ? (a, b, c) => combine(compare(a, b), c)
        : (a, b, c) => {
            const result = compare(a, b);
            return [combine(result, c), combine(result ^ 1, c)];
          };
  return evaluate;
}

function setpCode({ comparison, combination, type, flushes }: Asked): Emit | null {
  const code = comparisonCode(comparison, type, flushes);
  if (code === null) return null;
  const combine = combinationCode[combination];
  return (body, a, b, predicate) => {
    const holds = body.keep(code(body, a, b));
    if (combine === undefined) return [[holds], [v128.not(holds)]];
    const [p] = predicate.vectors;
    return [[combine(holds, p)], [combine(v128.not(holds), p)]];
  };
}

/** The value that `set` writes for a comparison that holds, by the type of the result; otherwise it writes 0. */
const truths: Readonly<Record<string, number>> = {
  u32: 0xffffffff,
  s32: 0xffffffff,
  u16: 0xffff,
  s16: 0xffff,
  f32: 0x3f800000,
  f16: 0x3c00,
  bf16: 0x3f80,
};

function setEvaluate(asked: Asked, { comparisons, predicates }: ComparedTypes, result: string) {
  const combine = combinations[asked.combination];
  const compare = compared(asked, comparisons);
  const truth = truths[result.replace('x2', '')];
  const single = (a: LaneValue, b: LaneValue, c: number): number =>
    combine(compare(a, b), c) === 1 ? truth : 0;
  if (predicates !== 'p|q') return single;
  return (a: LaneValue, b: LaneValue, c: number): number => {
    const [x, y] = [halvesOf(a), halvesOf(b)];
    return ((single(x[1], y[1], c) << 16) | single(x[0], y[0], c)) >>> 0;
  };
}

type Chosen = Readonly<Record<string, string>>;

/** The rows of `setp` and `set` for types, without or with a predicate that is combined with the result. */
function rowsOf(types: ComparedTypes, isCombined: boolean): Row[] {
  const boolOp = isCombined ? '.BoolOp' : '';
  const operands = isCombined ? 'a, b, {!}c' : 'a, b';
  const typeKey = /\w+$/.exec(types.name)?.[0] ?? '';
  const askedOf = (chosen: Chosen): Asked => ({
    comparison: chosen.CmpOp,
    combination: chosen.BoolOp ?? '',
    type: chosen[typeKey].replace('x2', ''),
    flushes: (chosen.ftz ?? '') !== '',
  });
  // The machine has words.
  const hasWords = [types.name, ...Object.values(types.alternatives).flat()].some((type) =>
    /\.[bsuf]32$/.test(type),
  );
  const common = {
    meaning: 'decides',
    unit: 'alu',
    laneOperations: 1,
    evidence: 'silicon',
  } as const;
  const alternatives = {
    CmpOp: Object.keys(types.comparisons).map((name) => `.${name}`),
    BoolOp: ['.and', '.or', '.xor'],
    ...types.alternatives,
  };
  return [
    row({
      ...common,
      syntax: `setp.CmpOp${boolOp}${types.name} ${types.predicates}, ${operands}` as string,
      alternatives,
      evaluate: (chosen: Chosen, results) => setpEvaluate(askedOf(chosen), types, results),
      emit: (chosen: Chosen) => (types.predicates === 'p[|q]' ? setpCode(askedOf(chosen)) : null),
      isOfMachine: hasWords && ((chosen: Chosen) => chosen[typeKey].endsWith('32')),
      section: 'Comparison and Selection Instructions',
    }),
    row({
      ...common,
      syntax:
        `set.CmpOp${boolOp}${types.name.replace(/\.\w+$/, '.dtype$&')} d, ${operands}` as string,
      alternatives: { ...alternatives, dtype: types.setResults },
      except: (chosen: Chosen) => chosen.ftz === 'ftz' && chosen.dtype === 'bf16',
      evaluate: (chosen: Chosen) => setEvaluate(askedOf(chosen), types, chosen.dtype),
      section: 'Comparison and Selection Instructions',
    }),
  ];
}

/**
 * `setp` and `set` of all types. −0 equals +0. With `p|q` q is the negated comparison, combined with the predicate; for
 * packed types p is for the low halves and q for the high ones.
 */
export const comparisonRows: readonly Row[] = comparedTypes.flatMap((types) => [
  ...rowsOf(types, false),
  ...rowsOf(types, true),
]);
