import {
  addDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  type DoubleDouble,
  multiplyDoubleDouble,
  negateDoubleDouble,
  squareRootDoubleDouble,
  subtractDoubleDouble,
} from '../../arith/index.js';
import { cosine, exp2, log2, sine, tanh } from './real-functions.js';
import type { Limit, RealFunction } from '../trace/index.js';

type Evaluate = (a: DoubleDouble, b: DoubleDouble, c: DoubleDouble) => DoubleDouble;

const one = doubleDouble(1);

function magnitude(x: DoubleDouble): DoubleDouble {
  return x.high < 0 ? negateDoubleDouble(x) : x;
}

function isBelow(x: DoubleDouble, y: DoubleDouble): boolean {
  return x.high < y.high || (x.high === y.high && x.low < y.low);
}

const functions: Readonly<Record<RealFunction, Evaluate>> = {
  add: addDoubleDouble,
  subtract: subtractDoubleDouble,
  multiply: multiplyDoubleDouble,
  fma: (a, b, c) => addDoubleDouble(multiplyDoubleDouble(a, b), c),
  divide: divideDoubleDouble,
  reciprocal: (a) => divideDoubleDouble(one, a),
  'square-root': squareRootDoubleDouble,
  'reciprocal-square-root': (a) => divideDoubleDouble(one, squareRootDoubleDouble(a)),
  exp2,
  log2,
  sine,
  cosine,
  tanh,
  absolute: magnitude,
  negate: negateDoubleDouble,
  copysign: (a, b) =>
    b.high < 0 || Object.is(b.high, -0) ? negateDoubleDouble(magnitude(a)) : magnitude(a),
  identity: (a) => a,
  'larger-magnitude': (a, b) => (isBelow(magnitude(a), magnitude(b)) ? magnitude(b) : magnitude(a)),
  'smaller-magnitude': (a, b) =>
    isBelow(magnitude(a), magnitude(b)) ? magnitude(a) : magnitude(b),
};

/** A result cut to the numbers that an instruction lets through. */
export function limited(x: DoubleDouble, limit: Limit): DoubleDouble {
  if (limit === null) return x;
  if (x.high < 0 || Number.isNaN(x.high)) return doubleDouble(0);
  return limit === 'saturate' && x.high >= 1 ? one : x;
}

/** The real function of up to three double-doubles; infinities and NaN as in fp64. */
export function evaluateReal(
  name: RealFunction,
  a: DoubleDouble,
  b: DoubleDouble,
  c: DoubleDouble,
): DoubleDouble {
  return functions[name](a, b, c);
}
