import { describe, expect, test } from 'vitest';
import {
  fastSumError,
  isProductErrorExact,
  orderedSumError,
  productError,
  sumError,
} from '../../src/arith/index.js';
import { exact, order, product, sum } from './exact.js';
import { anyFloat64, float64Pair, float64Within, words } from './float64-patterns.js';
import { scaled, testSeed } from '../setup/effort.js';

const patternCount = scaled(50_000);

function isExactSum(a: number, b: number, rounded: number, error: number): boolean {
  return order(sum(exact(a), exact(b)), sum(exact(rounded), exact(error))) === 0;
}

function isExactProduct(a: number, b: number, rounded: number, error: number): boolean {
  if (!Number.isFinite(error)) return false;
  return order(product(exact(a), exact(b)), sum(exact(rounded), exact(error))) === 0;
}

describe('sums', () => {
  test('a + b = rounded + error over every exponent', () => {
    const next = words(testSeed);
    for (let i = 0; i < patternCount; i++) {
      const [a, b] = float64Pair(next);
      const rounded = a + b;
      if (!Number.isFinite(rounded) || !Number.isFinite(b)) continue;
      const error = sumError(a, b, rounded);
      if (!isExactSum(a, b, rounded, error)) throw new Error(`${a} + ${b}: ${error}`);
      const [larger, smaller] = Math.abs(a) >= Math.abs(b) ? [a, b] : [b, a];
      const fast = fastSumError(larger, smaller, rounded);
      if (fast !== error) throw new Error(`fast ${larger} + ${smaller}: ${fast}, not ${error}`);
    }
  });

  test('finite sums just below overflow keep a finite error', () => {
    const next = words(testSeed + 1);
    const largest = Number.MAX_VALUE;
    for (let i = 0; i < 20_000; i++) {
      const a = i % 4 === 0 ? (i % 8 === 0 ? largest : -largest) : float64Within(next, 2045, 2046);
      const b = float64Within(next, 1970, 2046);
      for (const [first, second] of [
        [a, b],
        [b, a],
      ]) {
        const rounded = first + second;
        if (!Number.isFinite(rounded)) continue;
        const error = orderedSumError(first, second, rounded);
        if (!isExactSum(a, b, rounded, error)) throw new Error(`${first} + ${second}: ${error}`);
        if (Math.abs(a) === largest || Math.abs(b) === largest) continue;
        expect(sumError(first, second, rounded)).toBe(error);
      }
    }
  });
});

describe('products', () => {
  test('a·b = rounded + error wherever isProductErrorExact holds', () => {
    const next = words(testSeed);
    let inside = 0;
    for (let i = 0; i < patternCount; i++) {
      const [a, b] = i % 2 === 0 ? float64Pair(next) : [anyFloat64(next), anyFloat64(next)];
      const rounded = a * b;
      if (!isProductErrorExact(a, b, rounded)) continue;
      inside++;
      const error = productError(a, b, rounded);
      if (!isExactProduct(a, b, rounded, error)) throw new Error(`${a} · ${b}: ${error}`);
    }
    expect(inside).toBeGreaterThan(patternCount / 4);
  });

  test.each([
    ['the underflow edge', -970],
    ['the overflow edge', 1019],
  ])('%s of the domain', (_edge, exponent) => {
    const next = words(testSeed + exponent);
    const seen = { inside: 0, outside: 0 };
    for (let i = 0; i < 20_000; i++) {
      const a = float64Within(next, 0, 2018);
      const wanted = exponent + 1023 + 1023 - Math.floor(Math.log2(Math.abs(a) || 1)) - 1023;
      if (wanted < 0 || wanted > 2044) continue;
      const b = float64Within(next, wanted, wanted + 2);
      const rounded = a * b;
      if (!isProductErrorExact(a, b, rounded)) {
        seen.outside++;
        continue;
      }
      seen.inside++;
      const error = productError(a, b, rounded);
      if (!isExactProduct(a, b, rounded, error)) throw new Error(`${a} · ${b}: ${error}`);
    }
    expect(seen.inside).toBeGreaterThan(1000);
    expect(seen.outside).toBeGreaterThan(1000);
  });

  test('leaving the domain is reported where the error goes wrong', () => {
    const tiny = 2 ** -500 * (1 + Number.EPSILON);
    expect(isExactProduct(tiny, tiny, tiny * tiny, productError(tiny, tiny, tiny * tiny))).toBe(
      false,
    );
    expect(isProductErrorExact(tiny, tiny, tiny * tiny)).toBe(false);
    expect(productError(2 ** 1000, 2 ** -40, 2 ** 960)).toBeNaN();
    expect(isProductErrorExact(2 ** 1000, 2 ** -40, 2 ** 960)).toBe(false);
    expect(isProductErrorExact(2 ** -600, 2 ** -600, 0)).toBe(false);
    expect(isProductErrorExact(0, 2 ** -600, 0)).toBe(true);
    for (const special of [NaN, Infinity, -Infinity]) {
      expect(isProductErrorExact(special, 1, special)).toBe(false);
      expect(isProductErrorExact(0, special, NaN)).toBe(false);
    }
  });
});
