import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createExactArithmetic } from '../../../../kernels/online-softmax/attributed/engine.js';
import { loadCorrectlyRounded } from '../../../oracles/mpfr-correct-rounding.js';
import { scaled } from '../../../setup/effort.js';

const mpfr = await loadCorrectlyRounded();

describe('2^x of attributed runs', () => {
  const { powersOfTwo } = createExactArithmetic({ rows: 2, inner: 64, columns: 4 });
  const power = (...x: readonly number[]): number[] => {
    const results = new Float64Array(x.length);
    powersOfTwo(results, Float64Array.from(x));
    return [...results];
  };

  it('lies within 2^-51 of itself of what 300 bits say, and is exact for integers', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -1021, max: 1023, noNaN: true }), {
          minLength: 1,
          maxLength: 99,
        }),
        (x) => {
          power(...x).forEach((result, i) =>
            expect(mpfr.distance('exp2', x[i], result)).toBeLessThanOrEqual(2 ** -51 * result),
          );
        },
      ),
      { numRuns: scaled(200) },
    );
    const integers = Array.from({ length: 128 }, (_, i) => 16 * i - 1022);
    expect(power(...integers)).toEqual(integers.map((n) => 2 ** n));
  });

  it('is subnormal, 0, ∞ or NaN where it has to be', () => {
    expect(power(-1074, -1060, -1080, 1024, -Infinity, Infinity, NaN, -0)).toEqual([
      2 ** -1074,
      2 ** -1060,
      0,
      Infinity,
      0,
      Infinity,
      NaN,
      1,
    ]);
    const [result] = power(-1050.3);
    expect(mpfr.distance('exp2', -1050.3, result)).toBeLessThanOrEqual(2 ** -1074);
  });
});

describe('products of attributed runs', () => {
  it('are the sums of four products at a time, in their order', () => {
    const size = fc.record({
      rows: fc.integer({ min: 1, max: 5 }),
      inner: fc.integer({ min: 1, max: 4 }).map((n) => 4 * n),
      columns: fc.integer({ min: 1, max: 4 }).map((n) => 4 * n),
    });
    const { product } = createExactArithmetic({ rows: 5, inner: 16, columns: 16 });
    const numbers = (length: number) =>
      fc
        .array(fc.double(), { minLength: length, maxLength: length })
        .map((x) => Float64Array.from(x));
    const drawn = size.chain((of) =>
      fc.record({
        of: fc.constant(of),
        a: numbers(of.rows * of.inner),
        b: numbers(of.inner * of.columns),
      }),
    );
    fc.assert(
      fc.property(drawn, ({ of: { rows, inner, columns }, a, b }) => {
        const target = new Float64Array(rows * columns).fill(7);
        product(target, a, b, { rows, inner, columns });
        target.forEach((value, i) => {
          const [row, column] = [Math.floor(i / columns), i % columns];
          const term = (k: number) => a[row * inner + k] * b[k * columns + column];
          let sum = 0;
          for (let k = 0; k < inner; k += 4)
            sum += term(k) + term(k + 1) + (term(k + 2) + term(k + 3));
          expect(value).toBe(sum);
        });
      }),
      { numRuns: scaled(100) },
    );
  });
});
