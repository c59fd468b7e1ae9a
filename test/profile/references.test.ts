import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createExp2Array,
  createLog2Array,
  exp2Rounded,
  log2Rounded,
  reciprocalRounded,
  reciprocalSquareRootRounded,
} from '../../oracles/index.js';
import { float64FromRational, rationalOfFloat64 } from '../../src/arith/index.js';
import { formats, nextDown, nextUp } from '../../src/formats/index.js';
import { references } from '../../src/profile/functions.js';
import { RequestError } from '../../src/request-error.js';
import { anyBits, float32 } from './random-results.js';

const shortFormats = (['fp32', 'bf16', 'fp16', 'e5m2', 'e4m3'] as const).map((f) => formats[f]);
const normal = anyBits
  .map(float32)
  .filter((x) => Number.isFinite(x) && Math.abs(x) >= 2 ** -126 && Math.abs(x) < 2 ** 127);

describe('fp64 values of arrays', () => {
  const inputs = new Float32Array(1);
  const values = new Float64Array(1);

  it('of 2^x round to the correctly rounded fp32 or next to it', () => {
    const exp2 = createExp2Array();
    fc.assert(
      fc.property(fc.double({ min: -126, max: 127, noNaN: true }), (x) => {
        inputs[0] = x;
        exp2(inputs, values, 1);
        const correct = exp2Rounded(inputs[0], formats.fp32);
        expect(Math.abs(values[0] / correct - 1)).toBeLessThanOrEqual(2 ** -24 + 2 ** -51);
      }),
    );
  });

  it('of log2 x likewise, and exact at powers of two', () => {
    const log2 = createLog2Array();
    fc.assert(
      fc.property(normal.map(Math.abs), fc.integer({ min: -149, max: 127 }), (x, exponent) => {
        inputs[0] = x;
        log2(inputs, values, 1);
        const correct = log2Rounded(x, formats.fp32);
        expect(Math.abs(values[0] - correct)).toBeLessThanOrEqual(
          Math.abs(correct) * (2 ** -24 + 2 ** -50),
        );
        inputs[0] = 2 ** exponent;
        log2(inputs, values, 1);
        expect(values[0]).toBe(exponent);
      }),
    );
  });

  it('leave what lies behind the count alone', () => {
    const into = Float64Array.of(7, 7);
    for (const { create } of Object.values(references)) {
      create()(Float32Array.of(1, 1), into, 1);
      expect(into[1]).toBe(7);
    }
  });
});

/** The position of a rational function of x against the midpoints around a rounded value. */
function expectNearest(
  rounded: number,
  format: (typeof shortFormats)[number],
  isAtMost: (bound: number) => boolean,
): void {
  const halfway = (a: number, b: number): number => a + (b - a) / 2;
  const [below, above] = [nextDown(format, rounded), nextUp(format, rounded)];
  if (Number.isFinite(above)) expect(isAtMost(halfway(rounded, above))).toBe(true);
  // Strictly: on the one midpoint that is met, half of a subnormal, the even neighbour is 0.
  if (Number.isFinite(below)) expect(isAtMost(halfway(below, rounded))).toBe(false);
}

describe('1/x and 1/√x rounded', () => {
  const product = (...factors: readonly number[]): number => {
    const parts = factors.map(rationalOfFloat64);
    const numerator = parts.reduce((p, r) => p * r.numerator, 1n);
    const denominator = parts.reduce((p, r) => p * r.denominator, 1n);
    // The sign of the difference from 1 survives the rounding.
    return float64FromRational(numerator - denominator, denominator);
  };

  it.each(shortFormats)('are nearest in $name', (format) => {
    fc.assert(
      fc.property(normal.map(Math.abs), (x) => {
        const reciprocal = reciprocalRounded(x, format);
        fc.pre(reciprocal !== 0 && Number.isFinite(reciprocal));
        expectNearest(reciprocal, format, (bound) => product(x, bound) >= 0);
      }),
    );
    fc.assert(
      fc.property(normal.map(Math.abs), (x) => {
        const root = reciprocalSquareRootRounded(x, format);
        fc.pre(root !== 0 && Number.isFinite(root));
        expectNearest(root, format, (bound) => product(x, bound, bound) >= 0);
      }),
    );
  });

  it('are nearest where fp64 cannot tell', () => {
    // Of all significands the one whose 1/√x is nearest to a midpoint of fp32: within 2^-52 of it.
    for (const x of [0x403a18e3, 0x413a18e3, 0x3f3a18e3].map(float32)) {
      const root = reciprocalSquareRootRounded(x, formats.fp32);
      expectNearest(root, formats.fp32, (bound) => product(x, bound, bound) >= 0);
    }
  });

  it('have their limits and signs', () => {
    const { fp32 } = formats;
    const limits = [0, -0, Infinity, -Infinity, NaN, 4, -4, 2 ** -149];
    expect(limits.map((x) => reciprocalRounded(x, fp32))).toEqual([
      ...[Infinity, -Infinity, 0, -0, NaN, 0.25, -0.25, Infinity],
    ]);
    expect(limits.map((x) => reciprocalSquareRootRounded(x, fp32))).toEqual([
      ...[Infinity, -Infinity, 0, NaN, NaN, 0.5, NaN, Math.fround(2 ** 74.5)],
    ]);
    // Half of fp16's smallest subnormal goes to even, which is zero.
    expect(reciprocalRounded(2 ** 25, formats.fp16)).toBe(0);
    expect(reciprocalRounded(nextDown(fp32, 2 ** 25), formats.fp16)).toBe(2 ** -24);
  });

  it('refuse what is no fp32 number and formats beyond fp32', () => {
    expect(() => reciprocalRounded(0.1, formats.fp32)).toThrow(RequestError);
    expect(() => reciprocalSquareRootRounded(0.1, formats.fp32)).toThrow(/no fp32 number/);
    expect(() => reciprocalRounded(2, formats.fp64)).toThrow(/cannot round correctly to fp64/);
  });
});
