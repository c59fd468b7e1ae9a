import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  boundOfPrediction,
  type PredictedBound,
  type PredictedRows,
} from '../../../../src/audit/gradients/diagnosis/predicted-bound.js';
import { drawFrom, expectAlike } from '../definitions/random-pairs.js';

const columns = 3;
const rows = 4;

const drawns = fc.record({
  seed: fc.integer({ min: 1, max: 1e6 }),
  hasSizes: fc.boolean(),
  least: fc.constantFrom(1, 2 ** -10),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

/** Gradients whose predictions are other numbers in every element, longer in some rows and shorter in others. */
function drawRows({ seed, hasSizes }: Drawn): PredictedRows {
  const { between, flips } = drawFrom(seed);
  const numbers = (make: () => number) => Float64Array.from({ length: rows * columns }, make);
  const exact = numbers(() => (flips() ? 1 : -1) * between(0.5, 2));
  const growths = Array.from({ length: rows }, () => (flips() ? between(1.5, 4) : between(0.1, 1)));
  const predicted = exact.map((x, i) => x * growths[Math.floor(i / columns)] * between(0.9, 1.1));
  const sizes = exact.map((x) => Math.abs(x) * between(1, 3));
  const grown = sizes.map((x) => x * (flips() ? between(1.1, 4) : between(0.1, 0.9)));
  const bound = {
    total: numbers(() => between(0.1, 0.2)),
    systematic: numbers(() => between(0.01, 0.1)),
    known: numbers(() => between(0.01, 0.1)),
    deviation: numbers(() => between(0.01, 0.1)),
  };
  // Roundings of results in fp64 are next to nothing beside these bounds.
  return {
    exact,
    predicted,
    bound,
    format: 'fp64',
    columns,
    sizes: hasSizes ? [sizes, grown] : null,
  };
}

const lengthOf = (values: Float64Array, row: number) =>
  Math.hypot(...values.subarray(row * columns, (row + 1) * columns));

/** How much an element has grown: as its sizes, or where these are not known as the length of its row. */
function growthOf({ exact, predicted, sizes }: PredictedRows, i: number): number {
  if (sizes !== null) return sizes[1][i] / sizes[0][i];
  const row = Math.floor(i / columns);
  return lengthOf(predicted, row) / lengthOf(exact, row);
}

describe('the bounds of a prediction', () => {
  it('grow with it, and shrink no further than a factor; one term that is more has all of its worst case as a spread', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const of = drawRows(drawn);
        const found = boundOfPrediction(of, drawn.least);
        const { total, systematic, known, deviation } = of.bound;
        for (let i = 0; i < rows * columns; i++) {
          const growth = Math.max(growthOf(of, i), drawn.least);
          expectAlike(found.total[i], growth * total[i], 'total');
          expectAlike(found.systematic[i], growth * systematic[i], 'systematic');
          expectAlike(found.known[i], growth * known[i], 'known');
          // A uniform error within a worst case has its √3-th part as deviation.
          const ofTerm = ((growth - 1) * total[i]) / Math.sqrt(3);
          const isLarger = drawn.hasSizes && growth > 1;
          const wanted = isLarger ? Math.hypot(deviation[i], ofTerm) : growth * deviation[i];
          expectAlike(found.deviation[i], wanted, 'deviation');
        }
      }),
      { numRuns: 30 },
    );
  });

  it('of elements that had no terms are some roundings of the terms that they have then', () => {
    const none = new Float64Array(columns);
    const bound: PredictedBound = { total: none, systematic: none, known: none, deviation: none };
    const predicted = Float64Array.of(1, -1.5, 1.25);
    const sizes = [none, predicted.map((x) => 4 * Math.abs(x))] as const;
    const of = { exact: none, predicted, bound, format: 'bf16', columns, sizes } as const;
    const found = boundOfPrediction(of, 1);
    // Half an ulp of numbers of [1, 2) in bf16.
    const half = 2 ** -8;
    predicted.forEach((x, i) => {
      expect(found.deviation[i]).toBeCloseTo(half / Math.sqrt(3), 15);
      expect(found.total[i]).toBeGreaterThan(half + half * Math.abs(x));
      expect(found.total[i]).toBeLessThan(half + 64 * half * Math.abs(x));
    });
    expect([...found.systematic, ...found.known]).toEqual([...none, ...none]);
  });
});
