import {
  call,
  type Expression,
  f32x4,
  i32x4,
  type Subroutine,
  v128,
} from '../../webassembly/index.js';
import { canonical, flushingProduct, magnitude } from '../float32.js';
import { reciprocal } from './special-functions.js';

const one = 0x3f800000;
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

/** A division by the unit's reciprocal: `div.full` and `div.approx`. */
export function approximateQuotient(rule: DivisionRule): Subroutine {
  return {
    name: 'div',
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
