import { type Emit } from '../vectors/index.js';
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
} from '../webassembly/index.js';

const isNan = (a: Expression): Expression => f64x2.ne(a, a);

/** The lanes of fp64 numbers that are NaN, as words. */
export function nanWords(a: Expression, b: Expression): Expression {
  return lowWords(isNan(a), isNan(b));
}

/** Roundings to an integral number, by their modifiers. */
export const integralCode: Readonly<
  Record<'f32' | 'f64', Readonly<Record<string, (a: Expression) => Expression>>>
> = {
  f32: { rni: f32x4.nearest, rzi: f32x4.trunc, rmi: f32x4.floor, rpi: f32x4.ceil },
  f64: { rni: f64x2.nearest, rzi: f64x2.trunc, rmi: f64x2.floor, rpi: f64x2.ceil },
};

/** fp32 to fp64: exact, and a NaN keeps its sign and its payload. */
const float32ToFloat64: Emit = (body, { vectors: [a] }) => {
  const sign = v128.and(a, i32x4.splat(0x80000000));
  const payload = i32x4.shrU(v128.and(a, i32x4.splat(0x7fffff)), 3);
  const high = body.keep(v128.or(v128.or(sign, i32x4.splat(0x7ff80000)), payload));
  const low = body.keep(i32x4.shl(a, 29));
  const nans = [interleaveLow(low, high), interleaveHigh(low, high)];
  const isWord = body.keep(f32x4.ne(a, a));
  const masks = [i64x2.extendLowI32x4S(isWord), i64x2.extendHighI32x4S(isWord)];
  const values = [f64x2.promoteLowF32x4(a), f64x2.promoteLowF32x4(swapHalves(a))];
  return [values.map((value, i) => v128.bitselect(nans[i], value, masks[i]))];
};

/** fp64 to fp32, where a NaN keeps its sign and the top of its payload. */
const float64ToFloat32: Emit = (body, { vectors: [a, b] }) => {
  const high = body.keep(highWords(a, b));
  const sign = v128.and(high, i32x4.splat(0x80000000));
  const payload = v128.or(
    i32x4.shl(v128.and(high, i32x4.splat(0xfffff)), 3),
    i32x4.shrU(lowWords(a, b), 29),
  );
  const nan = v128.or(v128.or(sign, i32x4.splat(0x7fc00000)), payload);
  const value = joinLow(f32x4.demoteF64x2Zero(a), f32x4.demoteF64x2Zero(b));
  return [[v128.bitselect(nan, value, lowWords(isNan(a), isNan(b)))]];
};

/** Conversions between fp32 and fp64, and of fp64 to an integral number. */
export const floatCode = {
  float32ToFloat64,
  float64ToFloat32,
  integralFloat64: (irnd: string, a: Expression): Expression =>
    v128.bitselect(v128.or(a, i64x2.splat(1n << 51n)), integralCode.f64[irnd](a), isNan(a)),
} as const;

/** fp32 rounded to nearest even at bit 16: the upper half is bf16, the lower half is meaningless. */
export function roundedToBf16(body: FunctionBody, a: Expression): Expression {
  const lowest = v128.and(i32x4.shrU(a, 16), i32x4.splat(1));
  const rounded = i32x4.add(i32x4.add(a, i32x4.splat(0x7fff)), lowest);
  return body.keep(v128.bitselect(i32x4.splat(0x7fff0000), rounded, f32x4.ne(a, a)));
}
