import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  doubleDoubleFromRational,
  doubleDoubleFromSum,
  float64FromRational,
  rationalOfFloat64,
  type DoubleDouble,
  type Rational,
} from '../../src/arith/index.js';
import { RequestError } from '../../src/request-error.js';
import { bits64, exact, float64, order, product } from './exact.js';
import { anyFloat64, float64Within, words } from './float64-patterns.js';
import { testSeed } from '../setup/effort.js';

const fraction = fc
  .tuple(fc.bigInt(), fc.bigInt({ min: 1n }), fc.integer({ min: -1200, max: 1200 }))
  .map(([top, bottom, shift]): [bigint, bigint] =>
    shift >= 0 ? [top << BigInt(shift), bottom] : [top, bottom << BigInt(-shift)],
  );

/** |value − top/bottom| is at most that of both fp64 neighbours, and a tie has an even last bit. */
function isNearest(value: number, top: bigint, bottom: bigint): boolean {
  const distance = (candidate: number): bigint => {
    const { integer, exponent } = exact(candidate);
    const scaled = (integer << BigInt(exponent + 1074)) * bottom - (top << 1074n);
    return scaled < 0n ? -scaled : scaled;
  };
  const here = distance(value);
  const up = value === 0 ? float64(1n) : float64(bits64(value) + 1n);
  const down = value === 0 ? -float64(1n) : float64(bits64(value) - 1n);
  return [up, down].every((other) => {
    if (!Number.isFinite(other)) return true;
    const there = distance(other);
    return here < there || (here === there && (bits64(value) & 1n) === 0n);
  });
}

describe('fp64 and fractions', () => {
  test('every exponent goes to a fraction and back', () => {
    const next = words(testSeed);
    for (let i = 0; i < 20_000; i++) {
      const value = i < 2047 ? float64Within(next, i, i) : anyFloat64(next);
      if (!Number.isFinite(value)) continue;
      const { numerator, denominator } = rationalOfFloat64(value);
      const isLowestTerms = denominator === 1n || (denominator > 0n && (numerator & 1n) === 1n);
      const asExact = product(exact(value), { integer: denominator, exponent: 0 });
      const isSame = order(asExact, { integer: numerator, exponent: 0 }) === 0;
      const back = float64FromRational(numerator, denominator);
      const backNegated = float64FromRational(-3n * numerator, -3n * denominator);
      if (!(isLowestTerms && isSame && back === value && backNegated === value)) {
        throw new Error(`${value}: ${numerator} / ${denominator}, back ${back} ${backNegated}`);
      }
    }
  });

  test('a fraction goes to the nearest fp64 value, ties to even', () => {
    fc.assert(
      fc.property(fraction, ([top, bottom]) => {
        const value = float64FromRational(top, bottom);
        return Number.isFinite(value)
          ? isNearest(value, top, bottom)
          : 2n ** 1023n * bottom < abs(top);
      }),
      { numRuns: 3000 },
    );
  });

  test('ties, overflow and the smallest subnormal', () => {
    expect(float64FromRational(2n ** 53n + 1n, 1n)).toBe(2 ** 53);
    expect(float64FromRational(2n ** 53n + 3n, 1n)).toBe(2 ** 53 + 4);
    expect(float64FromRational(2n ** 54n + 2n, -1n)).toBe(-(2 ** 54));
    expect(float64FromRational(1n, 2n ** 1075n)).toBe(0);
    expect(float64FromRational(-1n, 2n ** 1075n)).toBe(-0);
    expect(float64FromRational(2n ** 60n + 1n, 2n ** 1135n)).toBe(Number.MIN_VALUE);
    expect(float64FromRational(3n, 2n ** 1075n)).toBe(2 * Number.MIN_VALUE);
    const midpoint = 2n ** 1024n - 2n ** 970n;
    expect(float64FromRational(midpoint, 1n)).toBe(Infinity);
    expect(float64FromRational(midpoint - 1n, 1n)).toBe(Number.MAX_VALUE);
    expect(float64FromRational(-(10n ** 400n), 1n)).toBe(-Infinity);
    expect(float64FromRational(0n, -7n)).toBe(0);
  });

  test('what has no value is refused', () => {
    expect(() => float64FromRational(1n, 0n)).toThrow(RequestError);
    expect(() => rationalOfFloat64(NaN)).toThrow(/NaN has no exact rational value/);
    expect(() => rationalOfFloat64(-Infinity)).toThrow(RequestError);
  });
});

describe('double-doubles', () => {
  const anyDoubleDouble = fc
    .tuple(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    )
    .map(([a, b]) => doubleDoubleFromSum(a, b))
    .filter((x) => Number.isFinite(x.high) && Number.isFinite(x.low));

  test('the fraction of a double-double gives it back', () => {
    fc.assert(
      fc.property(anyDoubleDouble, (x) => {
        const { numerator, denominator } = fractionOf(x);
        const back = doubleDoubleFromRational(numerator, denominator);
        expect(back.high === x.high && back.low === x.low).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test('a fraction is within u² of its double-double', () => {
    fc.assert(
      fc.property(fc.bigInt(), fc.bigInt({ min: 1n }), (top, bottom) => {
        const x = doubleDoubleFromRational(top, bottom);
        const { numerator, denominator } = fractionOf(x);
        const error = abs(numerator * bottom - top * denominator);
        return x.high + x.low === x.high && error << 106n <= abs(top) * denominator;
      }),
      { numRuns: 1000 },
    );
  });

  test('0.1 has a low word that carries its next 53 bits', () => {
    const x = doubleDoubleFromRational(1n, 10n);
    const { numerator, denominator } = fractionOf(x);
    expect(x.high).toBe(0.1);
    expect(abs(10n * numerator - denominator) << 106n <= denominator).toBe(true);
    expect(x.low).not.toBe(0);
  });
});

/** The exact sum of both words, which need not be in lowest terms. */
function fractionOf(x: DoubleDouble): Rational {
  const [high, low] = [rationalOfFloat64(x.high), rationalOfFloat64(x.low)];
  return {
    numerator: high.numerator * low.denominator + low.numerator * high.denominator,
    denominator: high.denominator * low.denominator,
  };
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}
