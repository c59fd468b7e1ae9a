import { describe, expect, test } from 'vitest';
import {
  addDoubleDouble,
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  divideDoubleDoubleByFloat64,
  doubleDouble,
  doubleDoubleFromSum,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  negateDoubleDouble,
  normalizedDoubleDouble,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../src/arith/index.js';
import { absolute, difference, exact, negative, order, product, sum, type Exact } from './exact.js';
import { float64Within, words } from './float64-patterns.js';
import { scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const patternCount = scaled(20_000);
/** A seed with which every law's operands come as near its bound as they must; others may not. */
const reachingSeed = 1;

function exactOf(x: DoubleDouble): Exact {
  return sum(exact(x.high), exact(x.low));
}

/** A normalised double-double with its high exponent field in a range. */
function anyDoubleDouble(next: () => number, lowest: number, highest: number): DoubleDouble {
  const high = float64Within(next, lowest, highest);
  const field = Math.floor(Math.log2(Math.abs(high))) + 1023;
  const gap = (next() & 3) === 0 ? next() % 60 : 0;
  const low = float64Within(next, Math.max(field - 55 - gap, 0), Math.max(field - 53 - gap, 0));
  const x = normalizedDoubleDouble(high, low);
  return Math.abs(x.high) === 0 ? doubleDouble(high) : x;
}

/** (a·u² + b·u³) as an exact value, u = 2^−53; a in halves. */
function bound(halvesOfSquare: number, cubes: number): Exact {
  const integer = (BigInt(halvesOfSquare) << 52n) + BigInt(cubes);
  return { integer, exponent: -159 };
}

/** The error as a multiple of u² relative to the exact result, rounded for the record. */
function relativeError(error: Exact, result: Exact): number {
  const shift = error.exponent - result.exponent + 106 + 40;
  const [top, bottom] = [absolute(error).integer, absolute(result).integer];
  const scaled = shift >= 0 ? (top << BigInt(shift)) / bottom : top / (bottom << BigInt(-shift));
  return Number(scaled) / 2 ** 40;
}

type Sample = readonly [DoubleDouble, DoubleDouble];

interface Law {
  readonly name: string;
  readonly run: (x: DoubleDouble, y: DoubleDouble) => DoubleDouble;
  /** The exact result times `divisor`, so that quotients stay integers. */
  readonly result: (x: DoubleDouble, y: DoubleDouble) => Exact;
  readonly divisor?: (y: DoubleDouble) => Exact;
  readonly limit: Exact;
  /** An error that the samples must exceed: the bound is not vacuous. */
  readonly reached: Exact;
  readonly samples: (next: () => number) => Sample;
}

/** Operands whose sum cancels: y is near −x, from all but the last bits to a few bits. */
function sumSample(next: () => number): Sample {
  const x = anyDoubleDouble(next, 900, 1100);
  const field = Math.floor(Math.log2(Math.abs(x.high))) + 1023;
  const y = anyDoubleDouble(next, field - 3, field + 1);
  const kind = next() & 7;
  if (kind < 3) return [x, y];
  if (kind === 3) return [x, anyDoubleDouble(next, 0, 2045)];
  if (kind === 4) {
    const low = -x.low * (1 + ((next() & 7) - 3) * Number.EPSILON);
    return [x, normalizedDoubleDouble(-x.high, low)];
  }
  return [x, normalizedDoubleDouble(-x.high * (1 + (next() & 3) * Number.EPSILON), y.low)];
}

/** Operands near 1 with small significands half of the time, where errors weigh most. */
function productSample(next: () => number): Sample {
  const near = (): DoubleDouble => {
    const sign = next() & 1 ? 1 : -1;
    const high = 1 + (next() >>> (next() & 31)) * 2 ** -(33 + (next() % 20));
    const low = (next() & 1 ? 1 : -1) * 2 ** -54 * (1 + next() * 2 ** -32);
    return normalizedDoubleDouble(sign * high, low);
  };
  const kind = next() & 3;
  if (kind < 2) return [near(), near()];
  if (kind === 2) return [anyDoubleDouble(next, 900, 1100), anyDoubleDouble(next, 900, 1100)];
  // The whole of the stated range: operands and result between 2^−916 and 2^995.
  return [anyDoubleDouble(next, 570, 1490), anyDoubleDouble(next, 570, 1490)];
}

const laws: readonly Law[] = [
  {
    name: 'x + y: 3u² + 13u³',
    run: addDoubleDouble,
    result: (x, y) => sum(exactOf(x), exactOf(y)),
    limit: bound(6, 13),
    reached: bound(3, 0),
    samples: sumSample,
  },
  {
    name: 'x − y: 3u² + 13u³',
    run: subtractDoubleDouble,
    result: (x, y) => difference(exactOf(x), exactOf(y)),
    limit: bound(6, 13),
    reached: bound(3, 0),
    samples: (next) => {
      const [x, y] = sumSample(next);
      return [x, negateDoubleDouble(y)];
    },
  },
  {
    name: 'x + fp64: 2u²',
    run: (x, y) => addFloat64ToDoubleDouble(x, y.high),
    result: (x, y) => sum(exactOf(x), exact(y.high)),
    limit: bound(4, 0),
    reached: bound(2, 0),
    samples: sumSample,
  },
  {
    name: 'x · y: 5u²',
    run: multiplyDoubleDouble,
    result: (x, y) => product(exactOf(x), exactOf(y)),
    limit: bound(10, 0),
    reached: bound(6, 0),
    samples: productSample,
  },
  {
    name: 'x · fp64: 3/2 u² + 4u³',
    run: (x, y) => multiplyDoubleDoubleByFloat64(x, y.high),
    result: (x, y) => product(exactOf(x), exact(y.high)),
    limit: bound(3, 4),
    reached: bound(2, 0),
    samples: productSample,
  },
  {
    name: 'x / y: 15u² + 56u³',
    run: divideDoubleDouble,
    result: exactOf,
    divisor: exactOf,
    limit: bound(30, 56),
    reached: bound(8, 0),
    samples: productSample,
  },
  {
    name: 'x / fp64: 3u²',
    run: (x, y) => divideDoubleDoubleByFloat64(x, y.high),
    result: exactOf,
    divisor: (y) => exact(y.high),
    limit: bound(6, 0),
    reached: bound(3, 0),
    samples: productSample,
  },
];

describe('relative errors against exact arithmetic', () => {
  inTurn.each(laws)('$name', ({ run, result, divisor, limit, reached, samples }) => {
    let isReached = false;
    for (const seed of [reachingSeed, testSeed]) {
      const next = words(seed);
      for (let i = 0; i < patternCount / 2; i++) {
        const [x, y] = samples(next);
        const computed = run(x, y);
        const what = `${x.high} ${x.low} and ${y.high} ${y.low}`;
        if (computed.high + computed.low !== computed.high)
          throw new Error(`unnormalised: ${what}`);
        const wanted = result(x, y);
        const scale = divisor === undefined ? exact(1) : divisor(y);
        const error = absolute(difference(product(exactOf(computed), scale), wanted));
        if (order(error, product(absolute(wanted), limit)) > 0) throw new Error(what);
        isReached ||= order(error, product(absolute(wanted), reached)) > 0;
      }
    }
    expect(isReached).toBe(true);
  });
});

test('the hard sum that Joldeş, Muller and Popescu publish errs by 2.25u² to four digits', () => {
  const x = { high: 9007199254740991, low: -9007199254740991 / 2 ** 54 };
  const y = { high: -9007199254740987 / 2, low: -9007199254740991 / 2 ** 56 };
  const wanted = sum(exactOf(x), exactOf(y));
  const error = difference(exactOf(addDoubleDouble(x, y)), wanted);
  expect(relativeError(error, wanted)).toBeCloseTo(2.25, 3);
});

describe('exact operations', () => {
  test('sums of two fp64 values', () => {
    const next = words(testSeed);
    for (let i = 0; i < scaled(10_000); i++) {
      const a = float64Within(next, 560, 1500);
      const b = float64Within(next, 560, 1500);
      const isExact = order(exactOf(doubleDoubleFromSum(a, b)), sum(exact(a), exact(b))) === 0;
      if (!isExact) throw new Error(`${a} and ${b}`);
    }
  });

  test('negation', () => {
    const next = words(testSeed);
    for (let i = 0; i < scaled(10_000); i++) {
      const x = anyDoubleDouble(next, 1000, 1002);
      const isRight = order(exactOf(negateDoubleDouble(x)), negative(exactOf(x))) === 0;
      if (!isRight) throw new Error(`${x.high} ${x.low}`);
    }
  });
});

describe('specials', () => {
  const one = doubleDouble(1);
  const zero = doubleDouble(0);
  const infinity = doubleDouble(Infinity);

  test('infinities and NaN leave no NaN in the low word', () => {
    expect(addDoubleDouble(infinity, one)).toEqual(infinity);
    expect(addDoubleDouble(infinity, doubleDouble(-Infinity)).high).toBeNaN();
    expect(addDoubleDouble(infinity, doubleDouble(-Infinity)).low).toBe(0);
    expect(addFloat64ToDoubleDouble(one, -Infinity)).toEqual(doubleDouble(-Infinity));
    expect(multiplyDoubleDouble(infinity, doubleDouble(-2))).toEqual(doubleDouble(-Infinity));
    expect(multiplyDoubleDouble(infinity, zero).high).toBeNaN();
    expect(multiplyDoubleDoubleByFloat64(one, Infinity)).toEqual(infinity);
    expect(divideDoubleDouble(one, zero)).toEqual(infinity);
    expect(divideDoubleDouble(one, infinity)).toEqual(zero);
    expect(divideDoubleDouble(zero, zero).high).toBeNaN();
    expect(divideDoubleDouble(infinity, one)).toEqual(infinity);
    expect(divideDoubleDoubleByFloat64(one, -0)).toEqual(doubleDouble(-Infinity));
    expect(doubleDoubleFromSum(Number.MAX_VALUE, Number.MAX_VALUE)).toEqual(infinity);
    expect(normalizedDoubleDouble(NaN, 1)).toEqual(doubleDouble(NaN));
  });
});
