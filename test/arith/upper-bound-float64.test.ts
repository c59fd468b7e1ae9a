import { describe, expect, test } from 'vitest';
import {
  addUp,
  divideUp,
  isProductErrorExact,
  multiplyUp,
  nextDownFloat64,
  nextUpFloat64,
} from '../../src/arith/index.js';
import { bits64, exact, float64, order, product, sum, type Exact } from './exact.js';
import { anyFloat64, float64Pair, float64Within, words } from './float64-patterns.js';
import { scaled, testSeed } from '../setup/effort.js';

const patternCount = scaled(50_000);
const largest = Number.MAX_VALUE;

/** The fp64 value above, by counting bit patterns. */
function above(value: number): number {
  if (value === 0) return float64(1n);
  return float64(bits64(value) + (value > 0 ? 1n : -1n));
}

/** The fp64 value below, by counting bit patterns. */
function below(value: number): number {
  return -above(-value);
}

/** −1, 0 or 1 as bound is below, at or above a value; compare(x) orders a finite x against it. */
function order64(bound: number, compare: (bound: Exact) => number): number {
  return Math.abs(bound) === Infinity ? Math.sign(bound) : compare(exact(bound));
}

/** Fails unless bound ≥ value, with at most `slack` fp64 values between the two. */
function checkBound(
  what: string,
  bound: number,
  slack: number,
  compare: (bound: Exact) => number,
): void {
  if (!(order64(bound, compare) >= 0)) throw new Error(`${what}: ${bound} is too low`);
  if (bound === -largest) return;
  let lower = below(bound);
  for (let i = 0; i < slack; i++) lower = below(lower);
  if (order64(lower, compare) >= 0) throw new Error(`${what}: ${bound} is too high`);
}

describe('neighbours', () => {
  test('nextUp and nextDown count bit patterns at every exponent', () => {
    const next = words(testSeed);
    for (let field = 0n; field < 2047n; field++) {
      const fractions = [0n, 1n, 2n ** 51n, 2n ** 52n - 1n, BigInt(next()), BigInt(next()) << 20n];
      for (const fraction of fractions) {
        for (const sign of [0n, 1n]) {
          const value = float64((sign << 63n) | (field << 52n) | fraction);
          if (nextUpFloat64(value) !== above(value)) throw new Error(`above ${value}`);
          if (nextDownFloat64(value) !== below(value)) throw new Error(`below ${value}`);
        }
      }
    }
  });

  test('specials', () => {
    expect(nextUpFloat64(largest)).toBe(Infinity);
    expect(nextUpFloat64(Infinity)).toBe(Infinity);
    expect(nextUpFloat64(-Infinity)).toBe(-largest);
    expect(nextDownFloat64(Infinity)).toBe(largest);
    expect(nextDownFloat64(-Infinity)).toBe(-Infinity);
    expect(nextUpFloat64(-Number.MIN_VALUE)).toBe(-0);
    expect(nextDownFloat64(Number.MIN_VALUE)).toBe(0);
    expect(nextUpFloat64(-0)).toBe(Number.MIN_VALUE);
    expect(nextDownFloat64(0)).toBe(-Number.MIN_VALUE);
    expect(nextUpFloat64(NaN)).toBeNaN();
  });
});

describe('upper bounds against exact arithmetic', () => {
  test('a + b rounded up', () => {
    const next = words(testSeed);
    for (let i = 0; i < patternCount; i++) {
      const [a, b] = float64Pair(next);
      if (!Number.isFinite(b)) continue;
      const value = sum(exact(a), exact(b));
      checkBound(`${a} + ${b}`, addUp(a, b), 0, (bound) => order(bound, value));
    }
  });

  test('a + b rounded up when one is the largest value', () => {
    const next = words(testSeed + 3);
    for (let i = 0; i < 10_000; i++) {
      const b = float64Within(next, 1970, 2046);
      for (const a of [largest, -largest]) {
        const value = sum(exact(a), exact(b));
        checkBound(`${a} + ${b}`, addUp(a, b), 0, (bound) => order(bound, value));
        checkBound(`${b} + ${a}`, addUp(b, a), 0, (bound) => order(bound, value));
      }
    }
  });

  test('a · b rounded up, or one ulp more outside the exact domain', () => {
    const next = words(testSeed + 1);
    for (let i = 0; i < patternCount; i++) {
      const [a, b] = i % 2 === 0 ? float64Pair(next) : [anyFloat64(next), anyFloat64(next)];
      if (!Number.isFinite(b)) continue;
      const value = product(exact(a), exact(b));
      const slack = isProductErrorExact(a, b, a * b) ? 0 : 1;
      checkBound(`${a} · ${b}`, multiplyUp(a, b), slack, (bound) => order(bound, value));
    }
  });

  test('a / b rounded up, or one ulp more outside the exact domain', () => {
    const next = words(testSeed + 2);
    for (let i = 0; i < patternCount; i++) {
      const b = i % 2 === 0 ? anyFloat64(next) : float64Within(next, 900, 1100);
      const quotient = i % 3 === 0 ? float64Within(next, 900, 1100) : anyFloat64(next);
      const a = i % 3 === 0 ? quotient * b : anyFloat64(next);
      if (b === 0 || !Number.isFinite(a)) continue;
      const rounded = a / b;
      const exactDomain = rounded !== 0 && isProductErrorExact(rounded, b, rounded * b);
      const slack = exactDomain || a === 0 ? 0 : 1;
      const [numerator, denominator] = [exact(a), exact(b)];
      checkBound(`${a} / ${b}`, divideUp(a, b), slack, (bound) => {
        const sign = b > 0 ? 1 : -1;
        return sign * order(product(bound, denominator), numerator);
      });
    }
  });

  test('exact results are returned unchanged', () => {
    expect(addUp(0.5, 0.25)).toBe(0.75);
    expect(multiplyUp(3, 5)).toBe(15);
    expect(divideUp(15, 5)).toBe(3);
    expect(multiplyUp(0, 2 ** -1074)).toBe(0);
    expect(divideUp(0, 2 ** -1074)).toBe(0);
    expect(divideUp(3, Infinity)).toBe(0);
  });

  test('overflow and underflow stay bounds', () => {
    expect(addUp(largest, 1)).toBe(Infinity);
    expect(addUp(-largest, -largest)).toBe(-largest);
    expect(multiplyUp(largest, 2)).toBe(Infinity);
    expect(multiplyUp(largest, -2)).toBe(-largest);
    expect(multiplyUp(2 ** -1000, 2 ** -1000)).toBe(Number.MIN_VALUE);
    expect(divideUp(largest, 0.5)).toBe(Infinity);
    expect(divideUp(largest, -0.5)).toBe(-largest);
    expect(divideUp(2 ** -1000, 2 ** 1000)).toBe(Number.MIN_VALUE);
    expect(divideUp(1, 0)).toBe(Infinity);
  });

  test('infinities and NaN are those of the plain operation', () => {
    expect(addUp(Infinity, 1)).toBe(Infinity);
    expect(addUp(-Infinity, 1)).toBe(-Infinity);
    expect(addUp(Infinity, -Infinity)).toBeNaN();
    expect(multiplyUp(0, Infinity)).toBeNaN();
    expect(multiplyUp(-2, Infinity)).toBe(-Infinity);
    expect(divideUp(0, 0)).toBeNaN();
    expect(divideUp(Infinity, Infinity)).toBeNaN();
    expect(divideUp(Infinity, -2)).toBe(-Infinity);
    for (const bound of [addUp, multiplyUp, divideUp]) {
      expect(bound(NaN, 1)).toBeNaN();
      expect(bound(1, NaN)).toBeNaN();
    }
  });
});
