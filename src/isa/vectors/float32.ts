import { type Expression, f32x4, type FunctionBody, i32x4, v128 } from '../webassembly/index.js';

// fp32 arithmetic to nearest even is WebAssembly's, except for NaNs, which are 0x7fffffff here, and for .ftz.

const nan = i32x4.splat(0x7fffffff);
const magnitudeMask = i32x4.splat(0x7fffffff);

/** The vector with 0x7fffffff for every NaN; it is written twice. */
export function canonical(a: Expression): Expression {
  return v128.bitselect(nan, a, f32x4.ne(a, a));
}

/** The bits without the sign. */
export function magnitude(a: Expression): Expression {
  return v128.and(a, magnitudeMask);
}

/** Subnormal numbers as zeros of their sign; `a` is written several times. */
export function flushed(a: Expression): Expression {
  // A number less than 2^-126 in magnitude keeps only its sign.
  return v128.andnot(a, v128.and(i32x4.ltS(magnitude(a), i32x4.splat(0x00800000)), magnitudeMask));
}

/**
 * `result` as `.ftz` flushes it: to zero if it is below 2^-126 after rounding to 24 bits with unlimited exponents.
 * Twice the exact result, rounded, has these bits: `doubled` gives it.
 */
export function flushedResult(result: Expression, doubled: Expression): Expression {
  const isTiny = i32x4.ltS(magnitude(doubled), i32x4.splat(0x01000000));
  return v128.andnot(result, v128.and(isTiny, magnitudeMask));
}

/** The product of fp32 numbers with `.ftz`; NaN is 0x7fffffff. */
export function flushingProduct(body: FunctionBody, a: Expression, b: Expression): Expression {
  const [x, y] = [body.keep(flushed(a)), body.keep(flushed(b))];
  const product = flushedResult(f32x4.mul(x, y), f32x4.mul(f32x4.add(x, x), y));
  return canonical(body.keep(product));
}

/** `.sat`: cut to [0, 1]; NaN and −0 give +0. */
export function saturated(body: FunctionBody, a: Expression): Expression {
  const kept = body.keep(a);
  // Positive numbers ascend as their patterns do.
  const isPositive = v128.and(
    i32x4.gtS(kept, i32x4.splat(0)),
    i32x4.leS(kept, i32x4.splat(0x7f800000)),
  );
  return v128.and(i32x4.minS(kept, i32x4.splat(0x3f800000)), isPositive);
}

/**
 * An extremum of numbers, from both orders of its operands: for zeros of different signs each order gives its first
 * operand, and their joined signs are the right one.
 */
export type Extremum = (a: Expression, b: Expression) => Expression;

const isNan = (a: Expression): Expression => f32x4.ne(a, a);

/** The rule for choosing one of two numbers. */
export interface ExtremumRule {
  readonly extremum: Extremum;
  readonly keepsNan: boolean;
}

/** Rules of the extrema, by opcode. */
export const extremumRules: Readonly<Record<'min' | 'max', Extremum>> = {
  min: (a, b) => v128.or(f32x4.pmin(a, b), f32x4.pmin(b, a)),
  max: (a, b) => v128.and(f32x4.pmax(a, b), f32x4.pmax(b, a)),
};

/**
 * The extremum where a NaN loses against a number, or wins; each of the inner selections waits for one comparison only.
 */
export function chosen(
  body: FunctionBody,
  { extremum, keepsNan }: ExtremumRule,
  a: Expression,
  b: Expression,
): Expression {
  const [isFirst, isSecond] = [body.keep(isNan(a)), body.keep(isNan(b))];
  const ofNumbers = extremum(a, b);
  if (keepsNan) return body.keep(v128.bitselect(nan, ofNumbers, v128.or(isFirst, isSecond)));
  return body.keep(
    v128.bitselect(
      v128.bitselect(nan, a, isFirst),
      v128.bitselect(b, ofNumbers, isFirst),
      isSecond,
    ),
  );
}
