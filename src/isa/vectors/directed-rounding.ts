import {
  type Expression,
  f64x2,
  type FunctionBody,
  i32x4,
  i64x2,
  lowWords,
  type Subroutine,
  v128,
} from '../webassembly/index.js';
import { canonical, flushed, magnitude } from './float32.js';
import { demoted, eachHalf, type Halves, promoted, sumToOdd } from './fused-multiply-add.js';

// A sum rounded to odd fp64 lies on the same side of every fp32 number as the exact sum, or on it where that does: so
// it can be rounded to fp32 in any direction. To nearest first; then a step back where that went the wrong way.

/** A rounding mode other than to nearest. */
export type Direction = 'toward-zero' | 'down' | 'up';

const signBit = i32x4.splat(0x80000000);

/** Lanes of `compare` on both halves as a mask of words. */
function comparedHalves(
  a: Halves,
  b: Halves,
  compare: (a: Expression, b: Expression) => Expression,
): Expression {
  return lowWords(compare(a.low, b.low), compare(a.high, b.high));
}

/** fp64 numbers rounded to fp32. */
export function rounded(body: FunctionBody, sums: Halves, direction: Direction): Expression {
  const nearest = body.keep(demoted(sums));
  const back = promoted(nearest);
  const sizes = (halves: Halves): Halves => eachHalf((half) => f64x2.abs(halves[half]));
  if (direction === 'toward-zero') {
    const isTooLarge = comparedHalves(sizes(back), sizes(sums), f64x2.gt);
    return body.keep(i32x4.add(nearest, isTooLarge));
  }
  // A step down adds one to the pattern of a negative number and subtracts one from that of a positive one.
  const sign = i32x4.shrS(nearest, 31);
  const one = i32x4.splat(1);
  const isDown = direction === 'down';
  const step = v128.or(isDown ? v128.not(sign) : sign, one);
  const isWrong = comparedHalves(back, sums, isDown ? f64x2.gt : f64x2.lt);
  return body.keep(i32x4.add(nearest, v128.and(step, isWrong)));
}

/** The sign bits of zero sums of opposite numbers, which are −0 when rounding down. */
function negativeZeros(sums: Halves, product: Halves, c: Halves): Expression {
  const zero = f64x2.splat(0);
  const isZero = comparedHalves(sums, { low: zero, high: zero }, f64x2.eq);
  const isPositive = comparedHalves(
    eachHalf((half) => v128.or(product[half], c[half])),
    { low: zero, high: zero },
    i64x2.eq,
  );
  return v128.and(v128.andnot(isZero, isPositive), signBit);
}

/** An operation whose rounded result is that of a sum of two fp64 numbers, or of one. */
export interface DirectedOperation {
  readonly name: string;
  readonly operands: 2 | 3;
  /** The terms whose sum is rounded; no second one for a product. */
  readonly terms: (operands: readonly Halves[]) => readonly [Halves, Halves | null];
}

function subroutine(
  { name, operands, terms }: DirectedOperation,
  direction: Direction,
  flushes: boolean,
): Subroutine {
  return {
    name: `${name} ${direction}`,
    parameters: operands,
    build: (body, ...sources) => {
      const kept = (halves: Halves): Halves => eachHalf((half) => body.keep(halves[half]));
      const values = sources.map((source) =>
        promoted(flushes ? body.keep(flushed(source)) : source),
      );
      const [first, second] = terms(values);
      const [product, c] = [kept(first), second === null ? null : kept(second)];
      const sums =
        c === null ? product : eachHalf((half) => sumToOdd(body, product[half], c[half]));
      let result = rounded(body, sums, direction);
      if (direction === 'down' && c !== null)
        result = body.keep(v128.or(result, negativeZeros(sums, product, c)));
      if (flushes) {
        // Twice the sum has the bits that a result below 2^-126 has with an exponent without limit.
        const doubled = kept(eachHalf((half) => f64x2.add(sums[half], sums[half])));
        const size = magnitude(rounded(body, doubled, direction));
        const isTiny = i32x4.ltS(size, i32x4.splat(0x01000000));
        result = body.keep(v128.andnot(result, v128.and(isTiny, i32x4.splat(0x7fffffff))));
      }
      return canonical(result);
    },
  };
}

/** The subroutines of an operation in a directed mode: without `.ftz`, and with it. */
interface DirectedForms {
  readonly keeping: Subroutine;
  readonly flushing: Subroutine;
}

/** An operation of fp32 in the directed modes, by their modifiers; NaN is 0x7fffffff. */
export function directedForms(
  operation: DirectedOperation,
): Readonly<Record<'rz' | 'rm' | 'rp', DirectedForms>> {
  const forms = (direction: Direction): DirectedForms => ({
    keeping: subroutine(operation, direction, false),
    flushing: subroutine(operation, direction, true),
  });
  return { rz: forms('toward-zero'), rm: forms('down'), rp: forms('up') };
}
