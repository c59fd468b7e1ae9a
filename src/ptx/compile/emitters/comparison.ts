import {
  type Expression,
  f32x4,
  f64x2,
  type FunctionBody,
  i32x4,
  i64x2,
  lowWords,
  v128,
} from '../../../isa/webassembly/index.js';
import type { Emitter, SourceValue } from './emitter.js';
import { flushed, signed16, unsigned64 } from '../../../isa/vectors/index.js';

type Comparison = (a: Expression, b: Expression) => Expression;

const order = {
  signed: { lt: i32x4.ltS, le: i32x4.leS, gt: i32x4.gtS, ge: i32x4.geS },
  unsigned: { lt: i32x4.ltU, le: i32x4.leU, gt: i32x4.gtU, ge: i32x4.geU },
  wide: { lt: i64x2.ltS, le: i64x2.leS, gt: i64x2.gtS, ge: i64x2.geS },
} as const;

type OrderName = keyof (typeof order)['signed'];

const orderNames: readonly OrderName[] = ['lt', 'le', 'gt', 'ge'];
/** PTX's other names for the order of unsigned integers. */
const unsignedNames: Readonly<Record<string, OrderName>> = {
  lo: 'lt',
  ls: 'le',
  hi: 'gt',
  hs: 'ge',
};

function ordered(comparisons: Readonly<Record<OrderName, Comparison>>): Record<string, Comparison> {
  return Object.fromEntries(orderNames.map((name) => [name, comparisons[name]]));
}

/** The comparisons under their other names. */
function renamed(comparisons: Readonly<Record<string, Comparison>>): Record<string, Comparison> {
  const others = Object.entries(unsignedNames).map(([name, known]): [string, Comparison] => [
    name,
    comparisons[known],
  ]);
  return { ...comparisons, ...Object.fromEntries(others) };
}

const equality32: Readonly<Record<string, Comparison>> = { eq: i32x4.eq, ne: i32x4.ne };
const equality64: Readonly<Record<string, Comparison>> = { eq: i64x2.eq, ne: i64x2.ne };

function extended(
  comparisons: Readonly<Record<string, Comparison>>,
  extend: (a: Expression) => Expression,
): Record<string, Comparison> {
  return Object.fromEntries(
    Object.entries(comparisons).map(([name, compare]): [string, Comparison] => [
      name,
      (a, b) => compare(extend(a), extend(b)),
    ]),
  );
}

/** The comparisons of numbers of fp32 or fp64. */
interface NumberComparisons extends Readonly<Record<OrderName, Comparison>> {
  readonly eq: Comparison;
  readonly ne: Comparison;
}

/** The comparisons, which are false where an operand is NaN, `ne` included; those that end in `u` are true there. */
function ofNumbers(numbers: NumberComparisons): Readonly<Record<string, Comparison>> {
  const { lt, le, gt, ge, eq, ne } = numbers;
  const isUnordered: Comparison = (a, b) => v128.or(ne(a, a), ne(b, b));
  return {
    ...ordered(numbers),
    eq,
    ne: (a, b) => v128.or(lt(a, b), gt(a, b)),
    num: (a, b) => v128.and(eq(a, a), eq(b, b)),
    nan: isUnordered,
    ltu: (a, b) => v128.not(ge(a, b)),
    leu: (a, b) => v128.not(gt(a, b)),
    gtu: (a, b) => v128.not(le(a, b)),
    geu: (a, b) => v128.not(lt(a, b)),
    equ: (a, b) => v128.or(eq(a, b), isUnordered(a, b)),
    neu: ne,
  };
}

const float32 = ofNumbers(f32x4);

/** A transformation of an operand before it is compared. */
type Prepare = (body: FunctionBody, a: Expression) => Expression;

interface ComparedType {
  readonly suffix: string;
  readonly bits: 16 | 32 | 64;
  readonly comparisons: Readonly<Record<string, Comparison>>;
  readonly prepare?: Prepare;
}

const unsignedOrder = renamed(ordered(order.unsigned));
const unsignedWide: Record<string, Comparison> = Object.fromEntries(
  orderNames.map((name) => [name, unsigned64(order.wide[name])]),
);

const types: readonly ComparedType[] = [
  { suffix: '.b16', bits: 16, comparisons: equality32 },
  { suffix: '.u16', bits: 16, comparisons: { ...equality32, ...unsignedOrder } },
  {
    suffix: '.s16',
    bits: 16,
    comparisons: { ...equality32, ...extended(ordered(order.signed), signed16) },
  },
  { suffix: '.b32', bits: 32, comparisons: equality32 },
  { suffix: '.u32', bits: 32, comparisons: { ...equality32, ...unsignedOrder } },
  { suffix: '.s32', bits: 32, comparisons: { ...equality32, ...ordered(order.signed) } },
  { suffix: '.b64', bits: 64, comparisons: equality64 },
  { suffix: '.u64', bits: 64, comparisons: { ...equality64, ...renamed(unsignedWide) } },
  { suffix: '.s64', bits: 64, comparisons: { ...equality64, ...ordered(order.wide) } },
  { suffix: '.f64', bits: 64, comparisons: ofNumbers(f64x2) },
  { suffix: '.f32', bits: 32, comparisons: float32 },
  {
    suffix: '.ftz.f32',
    bits: 32,
    comparisons: float32,
    prepare: (body, a) => body.keep(flushed(a)),
  },
];

/** The mask of the lanes in which the comparison holds. */
function compared(
  { bits, prepare }: ComparedType,
  compare: Comparison,
  body: FunctionBody,
  a: SourceValue,
  b: SourceValue,
): Expression {
  if (bits === 64)
    return lowWords(compare(a.vectors[0], b.vectors[0]), compare(a.vectors[1], b.vectors[1]));
  const [x, y] = [a.vectors[0], b.vectors[0]];
  return prepare === undefined ? compare(x, y) : compare(prepare(body, x), prepare(body, y));
}

/** Combinations of the result with a third operand, a predicate. */
const combinations: Readonly<Record<string, Comparison>> = {
  and: v128.and,
  or: v128.or,
  xor: v128.xor,
};

/**
 * `setp` with one destination or two: the second, of `p|q`, has the negated comparison, and is combined with the
 * predicate like the first.
 */
function emittersOf(type: ComparedType, opcode: string, compare: Comparison): Emitter[] {
  return [
    {
      name: `setp.${opcode}${type.suffix}`,
      sources: 2,
      emit: (body, a, b) => {
        const holds = body.keep(compared(type, compare, body, a, b));
        return [[holds], [v128.not(holds)]];
      },
    },
    ...Object.entries(combinations).map(([name, combine]): Emitter => ({
      name: `setp.${opcode}.${name}${type.suffix}`,
      sources: 3,
      emit: (body, a, b, predicate) => {
        const holds = body.keep(compared(type, compare, body, a, b));
        const [p] = predicate.vectors;
        return [[combine(holds, p)], [combine(v128.not(holds), p)]];
      },
    })),
  ];
}

/** Comparisons of integers and of fp32 numbers. */
export const comparisonEmitters: readonly Emitter[] = types.flatMap((type) =>
  Object.entries(type.comparisons).flatMap(([opcode, compare]) =>
    emittersOf(type, opcode, compare),
  ),
);
