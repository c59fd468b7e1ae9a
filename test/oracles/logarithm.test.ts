import { describe, expect, it } from 'vitest';
import { doubleDoubleExp2, doubleDoubleExp2Error } from '../../oracles/exp2.js';
import { naturalLogarithmOfNumber } from '../../oracles/fixed-point.js';
import { float64Logarithm } from '../../oracles/log2.js';
import { randomValues } from '../../properties/problems/values.js';
import { doubleDoubleFromSum } from '../../src/arith/index.js';
import { loadMpfr } from './mpfr.js';
import { scaled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();

/** Numbers next to 1, of every exponent, powers of two, and such as the row sums of a softmax. */
function numbersOfEveryKind(count: number): number[] {
  const random = randomValues(testSeed);
  const next = [
    () => 1 + random.sign() * random.uniform() * 2 ** -random.integer(1, 60),
    () => (1 + random.uniform()) * 2 ** random.integer(-1074, 1023),
    () => 2 ** random.integer(-1074, 1023),
    () => 1 + 10 * random.uniform(),
  ];
  return Array.from({ length: count }, (_, run) => next[run % next.length]());
}

const ends = [1, 2 ** -1074, 2 ** -1022, Number.MAX_VALUE, 1 + 2 ** -52, 1 - 2 ** -53];

describe.each([
  {
    name: 'of half an ulp and 2^-76',
    logarithm: naturalLogarithmOfNumber,
    most: (value: number) => 2 ** -53 * Math.abs(value) + 2 ** -76,
    leastWorst: 0.5,
  },
  {
    name: 'of 7u of it',
    logarithm: float64Logarithm,
    most: (value: number) => 7 * 2 ** -53 * Math.abs(value),
    // Roundings that all err to one side at once are rare.
    leastWorst: 0.25,
  },
])('ln of an fp64 number, with a radius $name', ({ logarithm, most, leastWorst }) => {
  it('is within its radius', () => {
    let worst = 0;
    mpfr.withPrecision(300, (arena) => {
      for (const x of numbersOfEveryKind(scaled(1500))) {
        const { value, radius } = logarithm(x);
        expect(radius).toBeLessThanOrEqual(most(value));
        const distance = arena.distance(arena.log(arena.of(x)), value);
        worst = Math.max(worst, distance === 0 ? 0 : distance / radius);
      }
    });
    expect(worst).toBeLessThanOrEqual(1);
    expect(worst).toBeGreaterThan(leastWorst);
  });

  it('is known at the ends of the range', () => {
    mpfr.withPrecision(300, (arena) => {
      for (const x of ends) {
        const { value, radius } = logarithm(x);
        expect(arena.distance(arena.log(arena.of(x)), value)).toBeLessThanOrEqual(radius);
      }
    });
  });

  it.each([0, -0, -1, -Infinity, Infinity, NaN])('has no value for %d', (x) => {
    expect(logarithm(x)).toEqual({ value: NaN, radius: NaN });
  });
});

inTurn('double-double 2^y errs by at most 2^-100 of it, its fraction in [0.98, 2.03)', () => {
  const random = randomValues(testSeed);
  let worst = 0;
  mpfr.withPrecision(300, (arena) => {
    for (let run = 0; run < scaled(5000); run++) {
      const wide = (random.uniform() - 0.5) * 2 ** random.integer(-60, 42);
      const nearStep = Math.round(wide * 32) / 32;
      const near = [
        wide,
        // Next to a table entry, and halfway between two of them.
        nearStep + random.sign() * 2 ** -random.integer(6, 90),
        nearStep + random.sign() / 64,
        nearStep,
      ];
      const high = Math.max(-(2 ** 41), Math.min(2 ** 41, near[run % near.length]));
      const y = doubleDoubleFromSum(high, high * 2 ** -53 * (random.uniform() - 0.5));
      const { fraction, exponent } = doubleDoubleExp2(y);
      expect(fraction.high).toBeGreaterThanOrEqual(0.98);
      expect(fraction.high).toBeLessThan(2.03);
      const exact = arena.exp2(
        arena.subtract(arena.add(arena.of(y.high), arena.of(y.low)), arena.of(exponent)),
      );
      const value = arena.add(arena.of(fraction.high), arena.of(fraction.low));
      worst = Math.max(worst, arena.distance(arena.divide(value, exact), 1));
    }
  });
  expect(worst).toBeLessThan(doubleDoubleExp2Error);
  // The analysis in its docstring says 12u²; a bound of 2^-106 would be false.
  expect(worst).toBeGreaterThan(2 ** -106);
});
