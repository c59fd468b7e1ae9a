import {
  call,
  type Expression,
  f32x4,
  f64x2,
  type FunctionBody,
  highWords,
  i32x4,
  i64x2,
  joinLow,
  lowWords,
  replaceWhere,
  type Subroutine,
  swapHalves,
  v128,
} from '../webassembly/index.js';

// The product of two fp32 numbers is an fp64 number, and so the fp64 sum is the one rounding before that to fp32.
// Two roundings to nearest differ from one only where the first ends at a midpoint of fp32 numbers: where the 29 bits
// that fp32 lacks are 1 followed by zeros, or, among subnormal results, where other bits are. Such lanes take a
// subroutine, which rounds the sum to odd: then the second rounding sees that something was left out.

/** Four fp64 numbers: those of the lower two lanes, and of the upper two. */
export interface Halves {
  readonly low: Expression;
  readonly high: Expression;
}

/** Four fp32 numbers as fp64. */
export function promoted(a: Expression): Halves {
  return { low: f64x2.promoteLowF32x4(a), high: f64x2.promoteLowF32x4(swapHalves(a)) };
}

/** Four fp64 numbers rounded to nearest fp32. */
export function demoted({ low, high }: Halves): Expression {
  return joinLow(f32x4.demoteF64x2Zero(low), f32x4.demoteF64x2Zero(high));
}

/** Computes both halves. */
export function eachHalf(compute: (half: keyof Halves) => Expression): Halves {
  return { low: compute('low'), high: compute('high') };
}

/** product + c rounded to odd fp64: away from an even last bit where the sum is not exact. */
export function sumToOdd(body: FunctionBody, product: Expression, c: Expression): Expression {
  const sum = body.keep(f64x2.add(product, c));
  const second = body.keep(f64x2.sub(sum, product));
  // The error of a sum (Knuth); NaN where the sum is infinite or NaN, which counts as exact.
  const error = body.keep(
    f64x2.add(f64x2.sub(product, f64x2.sub(sum, second)), f64x2.sub(c, second)),
  );
  const isInexact = f64x2.gt(f64x2.abs(error), f64x2.splat(0));
  const one = i64x2.splat(1n);
  const isEven = i64x2.sub(v128.and(sum, one), one);
  const step = v128.or(i64x2.shrS(v128.xor(error, sum), 63), one);
  return body.keep(i64x2.add(sum, v128.and(v128.and(step, isEven), isInexact)));
}

function exactly(name: string, flushes: boolean): Subroutine {
  return {
    name,
    parameters: 3,
    build: (body, a, b, c) => {
      const [x, y, z] = [promoted(a), promoted(b), promoted(c)];
      const sums = eachHalf((half) =>
        sumToOdd(body, body.keep(f64x2.mul(x[half], y[half])), body.keep(z[half])),
      );
      const result = demoted(sums);
      if (!flushes) return result;
      // Twice the sum has the bits that a result below 2^-126 has with an exponent without limit.
      const doubled = demoted(eachHalf((half) => f64x2.add(sums[half], sums[half])));
      const isTiny = i32x4.ltS(v128.and(doubled, i32x4.splat(0x7fffffff)), i32x4.splat(0x01000000));
      return v128.andnot(result, v128.and(isTiny, i32x4.splat(0x7fffffff)));
    },
  };
}

const keeping = exactly('fma', false);
const flushing = exactly('fma.ftz', true);

const beyondFloat32 = i32x4.splat(0x1fffffff);
const midpoint = i32x4.splat(0x10000000);
/** The high word of 2^-126 in fp64. */
const smallestNormal = 0x38100000;

/** Lanes whose fp64 sum must not be rounded a second time: at a midpoint, or nonzero and not above 2^-126. */
function needCare({ low, high }: Halves): Expression {
  const isMidpoint = i32x4.eq(v128.and(lowWords(low, high), beyondFloat32), midpoint);
  const size = v128.and(highWords(low, high), i32x4.splat(0x7fffffff));
  // size - 1 as an unsigned number, shifted by 2^31 for a signed comparison.
  const isSmall = i32x4.ltS(
    i32x4.add(size, i32x4.splat(0x7fffffff)),
    i32x4.splat(smallestNormal - 2 ** 31),
  );
  return v128.or(isMidpoint, isSmall);
}

/**
 * a·b + c of fp32 numbers rounded once to nearest even, NaNs unchanged. The operands are written several times.
 *
 * @param flushes whether tiny results become zeros; operands are flushed already
 */
export function fusedMultiplyAdd(
  body: FunctionBody,
  [a, b, c]: readonly [Expression, Expression, Expression],
  flushes: boolean,
): Expression {
  const [x, y, z] = [promoted(a), promoted(b), promoted(c)];
  const sums = eachHalf((half) => body.keep(f64x2.add(f64x2.mul(x[half], y[half]), z[half])));
  return replaceWhere(
    body,
    demoted(sums),
    v128.anyTrue(needCare(sums)),
    call(flushes ? flushing : keeping, a, b, c),
  );
}
