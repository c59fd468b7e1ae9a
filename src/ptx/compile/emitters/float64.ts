import {
  type Expression,
  f32x4,
  f64x2,
  type FunctionBody,
  highWords,
  i32x4,
  i64x2,
  interleaveHigh,
  interleaveLow,
  joinLow,
  lowWords,
  swapHalves,
  v128,
} from '../../../isa/webassembly/index.js';
import { type Emitter, onEachVector } from './emitter.js';

// fp64 arithmetic to nearest even is WebAssembly's, except for NaNs, whose bits WebAssembly leaves open: they are chosen
// here as the rows choose them.

const quietBit = i64x2.splat(1n << 51n);
const signBit = i64x2.splat(1n << 63n);
/** The result of an invalid operation without a NaN operand. */
const invalid = i64x2.splat(0xfff8000000000000n);

const isNan = (a: Expression): Expression => f64x2.ne(a, a);

function quiet(a: Expression): Expression {
  return v128.or(a, quietBit);
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
    (other, operand) => v128.bitselect(quiet(operand), other, isNan(operand)),
    invalid,
  );
  return v128.bitselect(nan, value, isNan(value));
}

type Binary = (a: Expression, b: Expression) => Expression;

const binary: Readonly<Record<string, readonly [modes: readonly string[], compute: Binary]>> = {
  add: [['', '.rn'], f64x2.add],
  sub: [['', '.rn'], f64x2.sub],
  mul: [['', '.rn'], f64x2.mul],
  div: [['.rn'], f64x2.div],
};

const arithmetic: readonly Emitter[] = [
  ...Object.entries(binary).flatMap(([opcode, [modes, compute]]) =>
    modes.map((mode) =>
      onEachVector(`${opcode}${mode}.f64`, 2, (body, a, b) =>
        withNan(body, compute(a, b), opcode === 'div' ? [a, b] : [b, a]),
      ),
    ),
  ),
  onEachVector('rcp.rn.f64', 1, (body, a) => withNan(body, f64x2.div(f64x2.splat(1), a), [a])),
  onEachVector('sqrt.rn.f64', 1, (body, a) => withNan(body, f64x2.sqrt(a), [a])),
];

/** The operand, made quiet and with its sign, where it is NaN; elsewhere the result. */
function quietedOr(a: Expression, result: Expression): Expression {
  return v128.bitselect(v128.or(a, quietBit), result, isNan(a));
}

const signs: readonly Emitter[] = [
  onEachVector('neg.f64', 1, (_, a) => quietedOr(a, v128.xor(a, signBit))),
  onEachVector('abs.f64', 1, (_, a) => quietedOr(a, v128.andnot(a, signBit))),
];

/**
 * Extrema, in which a NaN loses; of two NaNs the second is the result. Zeros of different signs are joined as in fp32.
 */
const extrema: readonly Emitter[] = [
  {
    opcode: 'min',
    extremum: (a: Expression, b: Expression) => v128.or(f64x2.pmin(a, b), f64x2.pmin(b, a)),
  },
  {
    opcode: 'max',
    extremum: (a: Expression, b: Expression) => v128.and(f64x2.pmax(a, b), f64x2.pmax(b, a)),
  },
].map(({ opcode, extremum }) =>
  onEachVector(`${opcode}.f64`, 2, (_, a, b) =>
    v128.bitselect(quietedOr(b, b), v128.bitselect(a, extremum(a, b), isNan(b)), isNan(a)),
  ),
);

/** fp32 to fp64: exact, and a NaN keeps its sign and its payload. */
const widening: Emitter = {
  name: 'cvt.f64.f32',
  sources: 1,
  emit: (body, { vectors: [a] }) => {
    const sign = v128.and(a, i32x4.splat(0x80000000));
    const payload = i32x4.shrU(v128.and(a, i32x4.splat(0x7fffff)), 3);
    const high = body.keep(v128.or(v128.or(sign, i32x4.splat(0x7ff80000)), payload));
    const low = body.keep(i32x4.shl(a, 29));
    const nans = [interleaveLow(low, high), interleaveHigh(low, high)];
    const isWord = body.keep(f32x4.ne(a, a));
    const masks = [i64x2.extendLowI32x4S(isWord), i64x2.extendHighI32x4S(isWord)];
    const values = [f64x2.promoteLowF32x4(a), f64x2.promoteLowF32x4(swapHalves(a))];
    return [values.map((value, i) => v128.bitselect(nans[i], value, masks[i]))];
  },
};

/** fp64 to fp32, where a NaN keeps its sign and the top of its payload. */
const narrowing: Emitter = {
  name: 'cvt.rn.f32.f64',
  sources: 1,
  emit: (body, { vectors: [a, b] }) => {
    const high = body.keep(highWords(a, b));
    const sign = v128.and(high, i32x4.splat(0x80000000));
    const payload = v128.or(
      i32x4.shl(v128.and(high, i32x4.splat(0xfffff)), 3),
      i32x4.shrU(lowWords(a, b), 29),
    );
    const nan = v128.or(v128.or(sign, i32x4.splat(0x7fc00000)), payload);
    const value = joinLow(f32x4.demoteF64x2Zero(a), f32x4.demoteF64x2Zero(b));
    return [[v128.bitselect(nan, value, lowWords(isNan(a), isNan(b)))]];
  },
};

const roundings: Readonly<Record<string, (a: Expression) => Expression>> = {
  rni: f64x2.nearest,
  rzi: f64x2.trunc,
  rmi: f64x2.floor,
  rpi: f64x2.ceil,
};

const integral: readonly Emitter[] = Object.entries(roundings).flatMap(([mode, round]) => [
  onEachVector(`cvt.${mode}.f64.f64`, 1, (_, a) => v128.bitselect(quiet(a), round(a), isNan(a))),
  // NaN gives the highest bit.
  ...[
    { type: 's32', convert: i32x4.truncSatF64x2SZero },
    { type: 'u32', convert: i32x4.truncSatF64x2UZero },
  ].map(({ type, convert }): Emitter => ({
    name: `cvt.${mode}.${type}.f64`,
    sources: 1,
    destinations: [32],
    emit: (_, { vectors: [a, b] }) => {
      const integer = joinLow(convert(round(a)), convert(round(b)));
      const nan = v128.and(lowWords(isNan(a), isNan(b)), i32x4.splat(0x80000000));
      return [[v128.or(integer, nan)]];
    },
  })),
]);

const fromIntegers: readonly Emitter[] = [
  { type: 's32', convert: f64x2.convertLowI32x4S },
  { type: 'u32', convert: f64x2.convertLowI32x4U },
].map(({ type, convert }) => ({
  name: `cvt.rn.f64.${type}`,
  sources: 1,
  emit: (_, { vectors: [a] }) => [[convert(a), convert(swapHalves(a))]],
}));

/** fp64 arithmetic to nearest even, and its conversions from and to 32 bits. */
export const float64Emitters: readonly Emitter[] = [
  ...arithmetic,
  ...signs,
  ...extrema,
  widening,
  narrowing,
  ...integral,
  ...fromIntegers,
];
