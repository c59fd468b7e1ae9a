import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CommonOffset, fourierTransform } from '../../src/audit/structure/common-offset.js';
import { formats, round, type FormatName } from '../../src/formats/index.js';

const numbers = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), {
  minLength: 16,
  maxLength: 16,
});

describe('the Fourier transform', () => {
  it('is the sum that defines it', () => {
    fc.assert(
      fc.property(numbers, numbers, (x, y) => {
        const [real, imaginary] = [Float64Array.from(x), Float64Array.from(y)];
        fourierTransform(16)(real, imaginary);
        for (let k = 0; k < 16; k++) {
          const of = (part: (n: number, c: number, s: number) => number) =>
            x.reduce((sum, _, n) => {
              const angle = (-2 * Math.PI * k * n) / 16;
              return sum + part(n, Math.cos(angle), Math.sin(angle));
            }, 0);
          expect(real[k]).toBeCloseTo(
            of((n, c, s) => x[n] * c - y[n] * s),
            10,
          );
          expect(imaginary[k]).toBeCloseTo(
            of((n, c, s) => x[n] * s + y[n] * c),
            10,
          );
        }
      }),
    );
  });
});

describe.each(['bf16', 'fp16', 'e4m3'] as const satisfies readonly FormatName[])(
  'the worst that one offset makes of roundings to %s',
  (name) => {
    const offset = new CommonOffset(name);
    const weights = fc.array(
      fc.tuple(fc.double({ min: 0, max: 0.999_999, noNaN: true }), fc.integer({ min: -9, max: 9 })),
      { minLength: 1, maxLength: 40 },
    );

    it('is no less than what any offset makes of them', () => {
      fc.assert(
        fc.property(weights, fc.integer({ min: 0, max: offset.places - 1 }), (list, shift) => {
          const places = new Float64Array(offset.places);
          // In the middle of their places: how finely these are cut is no matter of this law.
          let sum = 0;
          for (const [fraction, c] of list) {
            const place = Math.floor(fraction * offset.places);
            places[place] += c;
            const p = 2 ** (((place + shift + 0.5) / offset.places) % 1);
            sum += (c * (round(formats[name], p) - p)) / p;
          }
          const [largest, same] = offset.largest(places, places);
          expect(same).toBeCloseTo(largest, 12);
          expect(Math.abs(sum)).toBeLessThanOrEqual(largest * (1 + 1e-9) + 1e-12);
        }),
      );
    });
  },
);
