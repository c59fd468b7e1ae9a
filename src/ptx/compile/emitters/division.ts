import type { Expression, Subroutine } from '../webassembly/function-body.js';
import { call, f32x4, i32x4, v128 } from '../webassembly/vectors.js';
import { type Emitter, onWords } from './emitter.js';
import { canonical, flushed, flushedResult, flushingProduct, magnitude } from './float32.js';
import { reciprocal } from './mufu/special-functions.js';

const one = 0x3f800000;
const two = 0x40000000;
const quarter = 0x3e800000;
const two24 = 0x4b800000;
/** 2^126: beyond it the unit's reciprocal is subnormal, and the unit flushes it. */
const largestDivisor = 0x7e800000;
const smallestNormal = 0x00800000;

interface DivisionRule {
  /** `.full`: divisors beyond 2^126 are scaled. */
  readonly isFull: boolean;
  /** `.ftz`: products are flushed, and subnormal divisors are zeros; without it they are scaled. */
  readonly flushes: boolean;
}

/** The power of two by which both operands are multiplied; 1 changes nothing. */
function scaleOf(size: Expression, { isFull, flushes }: DivisionRule): Expression {
  const ofLarge = isFull
    ? v128.bitselect(
        i32x4.splat(quarter),
        i32x4.splat(one),
        i32x4.gtS(size, i32x4.splat(largestDivisor)),
      )
    : i32x4.splat(one);
  return flushes
    ? ofLarge
    : v128.bitselect(i32x4.splat(two24), ofLarge, i32x4.ltS(size, i32x4.splat(smallestNormal)));
}

/** A division as defined by the rows of src/ptx/instructions/lane/division.ts. */
function division(name: string, rule: DivisionRule): Subroutine {
  return {
    name,
    parameters: 2,
    build: (body, a, b) => {
      const product = (x: Expression, y: Expression): Expression =>
        rule.flushes ? flushingProduct(body, x, y) : canonical(body.keep(f32x4.mul(x, y)));
      const scale = body.keep(scaleOf(body.keep(magnitude(b)), rule));
      const inverse = body.keep(call(reciprocal, product(b, scale)));
      return product(inverse, body.keep(product(a, scale)));
    },
  };
}

/** Divisions by the special function unit's reciprocal. */
const approximate: readonly Emitter[] = ['full', 'approx'].flatMap((accuracy) =>
  [false, true].map((flushes): Emitter => {
    const name = `div.${accuracy}${flushes ? '.ftz' : ''}.f32`;
    const subroutine = division(name, { isFull: accuracy === 'full', flushes });
    return onWords(name, 2, (_, a, b) => call(subroutine, a, b));
  }),
);

/**
 * Correctly rounded quotients and square roots; `rcp` is a quotient of 1. With `.ftz`, twice the result is computed
 * too.
 */
const rounded: readonly Emitter[] = [
  onWords('div.rn.f32', 2, (body, a, b) => canonical(body.keep(f32x4.div(a, b)))),
  onWords('div.rn.ftz.f32', 2, (body, a, b) => {
    const [x, y] = [body.keep(flushed(a)), body.keep(flushed(b))];
    const quotient = flushedResult(f32x4.div(x, y), f32x4.div(f32x4.add(x, x), y));
    return canonical(body.keep(quotient));
  }),
  onWords('rcp.rn.f32', 1, (body, a) => canonical(body.keep(f32x4.div(i32x4.splat(one), a)))),
  onWords('rcp.rn.ftz.f32', 1, (body, a) => {
    const x = body.keep(flushed(a));
    const doubled = f32x4.div(i32x4.splat(two), x);
    return canonical(body.keep(flushedResult(f32x4.div(i32x4.splat(one), x), doubled)));
  }),
  onWords('sqrt.rn.f32', 1, (body, a) => canonical(body.keep(f32x4.sqrt(a)))),
  onWords('sqrt.rn.ftz.f32', 1, (body, a) =>
    canonical(body.keep(f32x4.sqrt(body.keep(flushed(a))))),
  ),
];

/** Divisions, reciprocals and square roots of fp32 numbers. */
export const divisionEmitters: readonly Emitter[] = [...approximate, ...rounded];
