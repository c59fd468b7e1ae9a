import {
  type Expression,
  type FunctionBody,
  highWords,
  i32x4,
  i64,
  i64x2,
  v128,
} from '../webassembly/index.js';
import type { SourceValue } from './emit.js';

// WebAssembly shifts all lanes by one amount. Where each lane has its own, a shift of words is a product with a power
// of two. Amounts from the width on shift everything out, as PTX's do.

/** 2^n in each lane for n from 0 to 31. */
function powerOfTwo(n: Expression): Expression {
  return i32x4.truncSatF32x4U(i32x4.shl(i32x4.add(n, i32x4.splat(127)), 23));
}

/** The lanes of n, an unsigned word, that are less than a bound from 1 to 2^31 − 1. */
function isBelow(n: Expression, bound: number): Expression {
  return i32x4.eq(i32x4.minU(n, i32x4.splat(bound - 1)), n);
}

/** The result of a shift by a constant: WebAssembly's below the width, else `beyond`. */
function byConstant(
  shift: (a: Expression, amount: number) => Expression,
  a: Expression,
  amount: bigint,
  beyond: Expression,
): Expression {
  if (amount === 0n) return a;
  return amount < 32n ? shift(a, Number(amount)) : beyond;
}

const zero = i32x4.splat(0);

/** a · 2^n modulo 2^32, for unsigned words. */
export function shiftLeft(a: Expression, n: SourceValue): Expression {
  if (n.constant !== null) return byConstant(i32x4.shl, a, n.constant, zero);
  const [amount] = n.vectors;
  return v128.and(i32x4.mul(a, powerOfTwo(amount)), isBelow(amount, 32));
}

/** ⌊a / 2^n⌋, for unsigned words; a is written twice. */
export function shiftRight(body: FunctionBody, a: Expression, n: SourceValue): Expression {
  if (n.constant !== null) return byConstant(i32x4.shrU, a, n.constant, zero);
  const amount = body.keep(i32x4.minU(n.vectors[0], i32x4.splat(32)));
  const factor = body.keep(powerOfTwo(i32x4.sub(i32x4.splat(32), amount)));
  const shifted = highWords(i64x2.extmulLowI32x4U(a, factor), i64x2.extmulHighI32x4U(a, factor));
  // 2^32 does not fit into a word.
  return v128.bitselect(a, shifted, i32x4.eq(amount, zero));
}

/** ⌊a / 2^n⌋ for signed words: −1 or 0 from n = 31 on; a is written twice. */
export function shiftRightSigned(body: FunctionBody, a: Expression, n: SourceValue): Expression {
  if (n.constant !== null) return byConstant(i32x4.shrS, a, n.constant, i32x4.shrS(a, 31));
  const sign = body.keep(i32x4.shrS(a, 31));
  return v128.xor(sign, shiftRight(body, body.keep(v128.xor(a, sign)), n));
}

type ScalarShift = (a: Expression, amount: Expression) => Expression;

/** One vector of 64-bit lanes, the first or second of its four, shifted lane by lane by amounts modulo 64. */
function shifted64(
  shift: ScalarShift,
  a: Expression,
  amounts: Expression,
  vector: number,
): Expression {
  const result = (lane: number): Expression =>
    shift(
      i64x2.extractLane(a, lane),
      i64.extendI32U(i32x4.extractLane(amounts, 2 * vector + lane)),
    );
  return i64x2.replaceLane(i64x2.replaceLane(a, 0, result(0)), 1, result(1));
}

/** Shifts that fill with zeros, of 64-bit lanes by words. */
export function shiftWide(
  body: FunctionBody,
  shift: 'shl' | 'shrU',
  a: SourceValue,
  n: SourceValue,
): Expression[] {
  const { constant } = n;
  if (constant !== null)
    return a.vectors.map((vector) =>
      constant < 64n ? i64x2[shift](vector, Number(constant)) : zero,
    );
  const [amount] = n.vectors;
  const isKept = body.keep(isBelow(amount, 64));
  const masks = [i64x2.extendLowI32x4S(isKept), i64x2.extendHighI32x4S(isKept)];
  return a.vectors.map((vector, i) => v128.and(shifted64(i64[shift], vector, amount, i), masks[i]));
}

/** Shifts of signed 64-bit lanes to the right. */
export function shiftWideSigned(body: FunctionBody, a: SourceValue, n: SourceValue): Expression[] {
  const { constant } = n;
  if (constant !== null)
    return a.vectors.map((vector) => i64x2.shrS(vector, Math.min(Number(constant), 63)));
  const amount = body.keep(i32x4.minU(n.vectors[0], i32x4.splat(63)));
  return a.vectors.map((vector, i) => shifted64(i64.shrS, vector, amount, i));
}

/** The value of a function of a source: a constant with the same bits in all lanes, or a computed word. */
export function valueOf(
  source: SourceValue,
  ofConstant: (bits: number) => number,
  ofWord: (a: Expression) => Expression,
): SourceValue {
  if (source.constant === null) return { vectors: [ofWord(source.vectors[0])], constant: null };
  const bits = ofConstant(Number(source.constant)) >>> 0;
  return { vectors: [i32x4.splat(bits)], constant: BigInt(bits) };
}
