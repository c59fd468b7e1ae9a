import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  distanceToFormat,
  outputRounding,
  roundingSpread,
} from '../../../src/audit/bounds/finish.js';
import { formats, round, ulp, type FormatName } from '../../../src/formats/index.js';

const names = fc.constantFrom<FormatName>('bf16', 'fp16', 'e4m3', 'e5m2', 'fp32');

/** A format and a number well within its range, of any exponent that it has. */
const numbers = names.chain((name) => {
  const top = Math.floor(Math.log2(formats[name].maxFinite)) - 1;
  return fc.tuple(
    fc.constant(name),
    fc
      .tuple(fc.integer({ min: -top - 4, max: top }), fc.double({ min: 1, max: 2, noNaN: true }))
      .map(([exponent, fraction]) => fraction * 2 ** exponent),
    fc.constantFrom(1, -1),
  );
});

describe('the rounding of an output', () => {
  it('is at most half an ulp, of what the output may come to', () => {
    fc.assert(
      fc.property(numbers, fc.double({ min: 0, max: 1, noNaN: true }), ([name, x, sign], off) => {
        const format = formats[name];
        const value = sign * x;
        const error = off * x * 0.9;
        for (const y of [value, value + error, value - error]) {
          // What overflows is no number, or infinite.
          if (Math.abs(y) > format.maxFinite) continue;
          const moved = Math.abs(round(format, y) - y);
          expect(moved).toBeLessThanOrEqual(outputRounding(name, value, error));
        }
        expect(outputRounding(name, value, 0)).toBe(ulp(format, x) / 2);
        // A tie errs by all of it.
        const grid = round(format, x);
        const tie = grid + ulp(format, grid) / 2;
        expect(Math.abs(round(format, tie) - tie)).toBe(outputRounding(name, tie, 0));
      }),
    );
  });

  it('stays that of the largest number beyond the range', () => {
    expect(outputRounding('fp16', 70_000, 0)).toBe(16);
    expect(outputRounding('fp16', -60_000, 1e9)).toBe(16);
    expect(outputRounding('fp16', 0, Infinity)).toBe(16);
  });

  it('is the distance from the nearest number; none is known beyond the largest', () => {
    fc.assert(
      fc.property(numbers, ([name, x, sign]) => {
        const format = formats[name];
        const distance = distanceToFormat(name, sign * x);
        expect(distance).toBe(Math.abs(round(format, x) - x));
        expect(distance).toBeLessThanOrEqual(ulp(format, x) / 2);
      }),
    );
    expect(distanceToFormat('bf16', 1 + 2 ** -9)).toBe(2 ** -9);
    expect(distanceToFormat('bf16', 1.5)).toBe(0);
    expect(distanceToFormat('fp16', 1e6)).toBe(Infinity);
    expect(distanceToFormat('fp16', Infinity)).toBe(Infinity);
    expect(distanceToFormat('fp16', NaN)).toBe(Infinity);
  });
});

describe('how the rounding of an output spreads', () => {
  // Half an ulp of bf16 at 1 is 2^-8; the output is a quarter of an ulp from 1.
  const half = 2 ** -8;
  const exact = 1 + half / 2;
  const spread = (changes: object) =>
    roundingSpread('bf16', exact, { predicted: 0, noise: 0, systematic: 0, ...changes });

  it('is known where nothing can carry the output past the middle between two numbers', () => {
    expect(spread({})).toMatchObject({ known: half / 2, variance: 0 });
    expect(spread({ systematic: 0.49 * half })).toMatchObject({ known: half / 2, variance: 0 });
    expect(spread({ systematic: 0.51 * half }).known).toBeNull();
    expect(spread({ noise: (0.49 * half) / 12 }).known).toBe(half / 2);
    expect(spread({ noise: (0.51 * half) / 12 }).known).toBeNull();
    expect(spread({ noise: (0.3 * half) / 12, systematic: 0.3 * half }).known).toBeNull();
  });

  it('is of the output as it is predicted, and known with that', () => {
    // Half an ulp more, and the number above is the nearest.
    const moved = spread({ predicted: half });
    expect(moved).toMatchObject({ known: 1.5 * half, variance: 0 });
    expect(spread({ predicted: -half / 2 })).toMatchObject({ known: half / 2, variance: 0 });
    expect(spread({ predicted: half / 2 }).known).toBeNull();
  });

  it('is uniform where anything moves it, and never more than what moves it and the distance', () => {
    for (const noise of [half, 10 * half])
      expect(spread({ noise })).toMatchObject({
        known: null,
        variance: (half / Math.sqrt(3)) ** 2,
      });
    const little = roundingSpread('bf16', 1 + half, {
      predicted: 0,
      noise: half / 100,
      systematic: 0,
    });
    // At a tie, that it goes up or down: half an ulp for certain.
    expect(little.known).toBeNull();
    expect(Math.sqrt(little.variance)).toBeGreaterThanOrEqual(half * 0.99);
    expect(Math.sqrt(little.variance)).toBeLessThanOrEqual(half);
    const near = roundingSpread('bf16', 1, { predicted: 0, noise: 0.2 * half, systematic: 0 });
    expect(near.known).toBeNull();
    expect(Math.sqrt(near.variance)).toBeCloseTo(0.2 * half, 12);
  });

  it('is at most √3 less than a simulation of noise finds, as near a tie', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -1, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 0.5, noNaN: true }),
        (place, size) => {
          const output = 1 + 8 * half + place * half;
          const noise = size * half;
          const { known, variance } = roundingSpread('bf16', output, {
            predicted: 0,
            noise,
            systematic: 0,
          });
          let squares = 0;
          const steps = 400;
          for (let i = 0; i < steps; i++) {
            // Quantiles of a uniform distribution with this standard deviation.
            const moved = output + noise * Math.sqrt(3) * ((2 * i + 1) / steps - 1);
            squares += (round(formats.bf16, moved) - moved) ** 2;
          }
          const found = Math.sqrt(squares / steps);
          if (known !== null) expect(known).toBe(Math.abs(round(formats.bf16, output) - output));
          else expect(Math.sqrt(variance)).toBeGreaterThanOrEqual(0.999 * (found / Math.sqrt(3)));
        },
      ),
    );
  });
});
