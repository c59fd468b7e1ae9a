import type { Expression, FunctionBody, Subroutine } from '../webassembly/function-body.js';
import { call, f64x2, i32x4, i64x2, lowWords, v128 } from '../webassembly/vectors.js';
import { type Emitter, onWords } from './emitter.js';
import { canonical, flushed, magnitude, withPacked } from './float32.js';
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

interface DirectedOperation {
  readonly opcode: string;
  readonly operands: 2 | 3;
  /** The terms whose sum is rounded; no second one for a product. */
  readonly terms: (operands: readonly Halves[]) => readonly [Halves, Halves | null];
}

const operations: readonly DirectedOperation[] = [
  { opcode: 'add', operands: 2, terms: ([a, b]) => [a, b] },
  {
    opcode: 'sub',
    operands: 2,
    terms: ([a, b]) => [a, eachHalf((half) => f64x2.neg(b[half]))],
  },
  {
    opcode: 'mul',
    operands: 2,
    terms: ([a, b]) => [eachHalf((half) => f64x2.mul(a[half], b[half])), null],
  },
  {
    opcode: 'fma',
    operands: 3,
    terms: ([a, b, c]) => [eachHalf((half) => f64x2.mul(a[half], b[half])), c],
  },
];

function subroutine(
  name: string,
  { operands, terms }: DirectedOperation,
  direction: Direction,
  flushes: boolean,
): Subroutine {
  return {
    name,
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

const directions: Readonly<Record<string, Direction>> = {
  rz: 'toward-zero',
  rm: 'down',
  rp: 'up',
};

/** `add`, `sub`, `mul` and `fma` of fp32 in the directed modes, including packed ones. */
export const directedEmitters: readonly Emitter[] = operations.flatMap((operation) =>
  Object.entries(directions).flatMap(([mode, direction]) =>
    ['', '.ftz'].flatMap((ftz) => {
      const name = `${operation.opcode}.${mode}${ftz}.f32`;
      const defined = subroutine(name, operation, direction, ftz !== '');
      return withPacked(
        onWords(name, operation.operands, (_, a, b, c) =>
          operation.operands === 2 ? call(defined, a, b) : call(defined, a, b, c),
        ),
      );
    }),
  ),
);
