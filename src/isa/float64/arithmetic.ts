import {
  addFloat64,
  divideFloat64,
  fusedMultiplyAddFloat64,
  multiplyFloat64,
  squareRootFloat64,
} from '../../arith/index.js';
import type { RoundingMode } from '../../formats/index.js';
import type { LaneValue } from '../instruction.js';
import { type Row, row } from '../row.js';
import { floatTypes } from '../values/float-type.js';
import { roundingModifiers, roundings } from '../values/rounding.js';
import { type Emit, onEachVector, type VectorFunction } from '../vectors/index.js';
import { type Expression, f64x2, type FunctionBody, i64x2, v128 } from '../webassembly/index.js';

const { f64 } = floatTypes;

const quietBit = 1n << 51n;
const infinity = 0x7ff0000000000000n;
const magnitude = (1n << 63n) - 1n;
/** The result of an invalid operation without a NaN operand. */
const invalid = 0xfff8000000000000n;

function isNan(bits: bigint): boolean {
  return (bits & magnitude) > infinity;
}

/** The bits of a result: for NaN the bits of the first operand that is NaN, made quiet. */
function bitsOf(value: number, operands: readonly bigint[]): bigint {
  if (value === value) return f64.bitsOf(value) as bigint;
  const found = operands.find(isNan);
  return found === undefined ? invalid : found | quietBit;
}

type Compute = (operands: readonly number[], mode: RoundingMode) => number;

/**
 * A function rounded once.
 *
 * @param isOfUnit whether the unit that adds and multiplies computes it, which looks for a NaN at b, then c, then a;
 * sequences of instructions look at a first
 */
function rounded(rnd: string, compute: Compute, isOfUnit: boolean) {
  const mode = roundings[rnd] ?? 'nearest-even';
  return (...values: LaneValue[]): bigint => {
    const bits = values.map(BigInt);
    const [a, ...others] = bits;
    return bitsOf(compute(bits.map(f64.numberOf), mode), isOfUnit ? [...others, a] : bits);
  };
}

/** Of one fp64 number with a NaN made quiet. */
function ofSign(compute: (a: bigint) => bigint) {
  return (value: LaneValue): bigint => {
    const a = BigInt(value);
    return isNan(a) ? a | quietBit : compute(a);
  };
}

/** An extremum in which −0 is less than +0; a NaN loses, and of two NaNs the second is the result, made quiet. */
function extremum(choose: (...values: number[]) => number) {
  return (first: LaneValue, second: LaneValue): bigint => {
    const [a, b] = [BigInt(first), BigInt(second)];
    const [x, y] = [f64.numberOf(a), f64.numberOf(b)];
    if (x !== x) return y === y ? b : b | quietBit;
    if (y !== y) return a;
    return f64.bitsOf(choose(x, y)) as bigint;
  };
}

// As code, fp64 arithmetic to nearest even is WebAssembly's, except for NaNs, whose bits WebAssembly leaves open: they are
// chosen here as the definitions choose them.

const quietBits = i64x2.splat(1n << 51n);
const signBit = i64x2.splat(1n << 63n);
/** The result of an invalid operation without a NaN operand. */
const invalidBits = i64x2.splat(0xfff8000000000000n);

const isNanCode = (a: Expression): Expression => f64x2.ne(a, a);

function quiet(a: Expression): Expression {
  return v128.or(a, quietBits);
}

/**
 * `result`, except that a NaN result becomes the first operand that is NaN: the unit looks at b before a, a division at
 * a.
 */
function withNan(
  body: FunctionBody,
  result: Expression,
  operands: readonly Expression[],
): Expression {
  const value = body.keep(result);
  const nan = operands.reduceRight<Expression>(
    (other, operand) => v128.bitselect(quiet(operand), other, isNanCode(operand)),
    invalidBits,
  );
  return v128.bitselect(nan, value, isNanCode(value));
}

/** To nearest even alone: the others run lane by lane. */
function toNearest({ rnd }: { readonly rnd: string }, code: VectorFunction): Emit | null {
  return rnd === '' || rnd === 'rn' ? onEachVector(code) : null;
}

/** The operand, made quiet and with its sign, where it is NaN; elsewhere the result. */
function quietedOr(a: Expression, result: Expression): Expression {
  return v128.bitselect(quiet(a), result, isNanCode(a));
}

/** Zeros of different signs are joined as in fp32. */
function extremumCode(compute: (a: Expression, b: Expression) => Expression): Emit {
  return onEachVector((_, a, b) =>
    v128.bitselect(quietedOr(b, b), v128.bitselect(a, compute(a, b), isNanCode(b)), isNanCode(a)),
  );
}

const common = {
  section: 'Floating Point Instructions',
  alternatives: { rnd: roundingModifiers },
  meaning: 'is',
  unit: 'fp64',
  evidence: 'silicon',
} as const;

const sums: readonly Row[] = [
  row({
    ...common,
    syntax: 'add{.rnd}.f64 d, a, b',
    evaluate: ({ rnd }) => rounded(rnd, ([a, b], mode) => addFloat64(a, b, mode), true),
    emit: (chosen) => toNearest(chosen, (body, a, b) => withNan(body, f64x2.add(a, b), [b, a])),
  }),
  row({
    ...common,
    syntax: 'sub{.rnd}.f64 d, a, b',
    evaluate: ({ rnd }) => rounded(rnd, ([a, b], mode) => addFloat64(a, -b, mode), true),
    emit: (chosen) => toNearest(chosen, (body, a, b) => withNan(body, f64x2.sub(a, b), [b, a])),
  }),
  row({
    ...common,
    syntax: 'mul{.rnd}.f64 d, a, b',
    evaluate: ({ rnd }) => rounded(rnd, ([a, b], mode) => multiplyFloat64(a, b, mode), true),
    emit: (chosen) => toNearest(chosen, (body, a, b) => withNan(body, f64x2.mul(a, b), [b, a])),
  }),
  ...(['fma', 'mad'] as const).map((opcode) =>
    row({
      ...common,
      syntax: `${opcode}.rnd.f64 d, a, b, c`,
      evaluate: ({ rnd }) =>
        rounded(rnd, ([a, b, c], mode) => fusedMultiplyAddFloat64(a, b, c, mode), true),
    }),
  ),
];

const quotients: readonly Row[] = [
  row({
    ...common,
    syntax: 'div.rnd.f64 d, a, b',
    evaluate: ({ rnd }) => rounded(rnd, ([a, b], mode) => divideFloat64(a, b, mode), false),
    emit: (chosen) => toNearest(chosen, (body, a, b) => withNan(body, f64x2.div(a, b), [a, b])),
  }),
  row({
    ...common,
    syntax: 'rcp.rnd.f64 d, a',
    evaluate: ({ rnd }) => rounded(rnd, ([a], mode) => divideFloat64(1, a, mode), false),
    emit: (chosen) =>
      toNearest(chosen, (body, a) => withNan(body, f64x2.div(f64x2.splat(1), a), [a])),
  }),
  row({
    ...common,
    syntax: 'sqrt.rnd.f64 d, a',
    evaluate: ({ rnd }) => rounded(rnd, ([a], mode) => squareRootFloat64(a, mode), false),
    emit: (chosen) => toNearest(chosen, (body, a) => withNan(body, f64x2.sqrt(a), [a])),
  }),
];

/**
 * fp64 in four rounding modes, subnormals kept. A NaN operand is passed on, made quiet, with its sign; PTX leaves the
 * NaN open, so an H200 decides.
 */
export const float64Rows: readonly Row[] = [
  ...sums,
  ...quotients,
  row({
    ...common,
    syntax: 'min.f64 d, a, b',
    evaluate: () => extremum(Math.min),
    emit: () => extremumCode((a, b) => v128.or(f64x2.pmin(a, b), f64x2.pmin(b, a))),
    meaning: 'chooses',
  }),
  row({
    ...common,
    syntax: 'max.f64 d, a, b',
    evaluate: () => extremum(Math.max),
    emit: () => extremumCode((a, b) => v128.and(f64x2.pmax(a, b), f64x2.pmax(b, a))),
    meaning: 'chooses',
  }),
  row({
    ...common,
    syntax: 'neg.f64 d, a',
    evaluate: () => ofSign((a) => a ^ (1n << 63n)),
    emit: () => onEachVector((_, a) => quietedOr(a, v128.xor(a, signBit))),
  }),
  row({
    ...common,
    syntax: 'abs.f64 d, a',
    evaluate: () => ofSign((a) => a & magnitude),
    emit: () => onEachVector((_, a) => quietedOr(a, v128.andnot(a, signBit))),
  }),
];
