import {
  type Expression,
  f32x4,
  f64x2,
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

const isNan = (a: Expression): Expression => f64x2.ne(a, a);

function quiet(a: Expression): Expression {
  return v128.or(a, quietBit);
}

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

/** Conversions of fp64 from and to 32 bits. */
export const float64Emitters: readonly Emitter[] = [
  widening,
  narrowing,
  ...integral,
  ...fromIntegers,
];
