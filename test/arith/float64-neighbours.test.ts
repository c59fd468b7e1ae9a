import { describe, expect, test } from 'vitest';
import { nextDownFloat64, nextUpFloat64 } from '../../src/arith/index.js';
import { bits64, float64 } from './exact.js';
import { words } from './float64-patterns.js';
import { testSeed } from '../setup/effort.js';

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
