import * as fc from 'fast-check';
import { describe, it } from 'vitest';
import { boundOfPrediction } from '../../../../src/audit/gradients/diagnosis/predicted-bound.js';
import { formats, ulp } from '../../../../src/formats/index.js';
import { drawFrom, expectAlike, type Draw } from './random-pairs.js';

const names = ['total', 'systematic', 'known', 'deviation'] as const;

type Bounds = Record<(typeof names)[number], Float64Array>;

const lengthOf = (row: ArrayLike<number>) =>
  Math.sqrt(Array.from(row, (x) => x * x).reduce((sum, x) => sum + x, 0));

const rowOf = (values: Float64Array, row: number, columns: number) =>
  values.subarray(row * columns, (row + 1) * columns);

/** The upper median. */
const medianOf = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** A gradient some rows of which are exactly zero, and whose bounds are other shares of each row's length. */
function drawGradient({ between, flips }: Draw, rows: number, columns: number) {
  const numbers = (make: (row: number) => number) =>
    Float64Array.from({ length: rows * columns }, (_, i) => make(Math.floor(i / columns)));
  const isZero = Array.from({ length: rows }, (_, row) => row === rows - 1 || flips());
  const exact = numbers((row) => (isZero[row] ? 0 : (flips() ? 1 : -1) * between(0.5, 2)));
  const bound = Object.fromEntries(
    names.map((name) => {
      const shares = isZero.map((zero) => (zero ? 0 : between(0.001, 0.1)));
      return [name, numbers((row) => shares[row] * between(0.5, 1))];
    }),
  ) as Bounds;
  return { exact, bound, isZero };
}

const drawns = fc.record({
  seed: fc.nat(1e6),
  rows: fc.integer({ min: 1, max: 24 }),
  columns: fc.integer({ min: 1, max: 16 }),
});

describe('the bounds of rows that are predicted where the exact ones are zero', () => {
  it('are the usual share of their length: the median over all rows with a length', () => {
    fc.assert(
      fc.property(drawns, ({ seed, rows, columns }) => {
        const draw = drawFrom(seed);
        const { exact, bound, isZero } = drawGradient(draw, rows, columns);
        const predicted = exact.map((x) => (x === 0 ? draw.between(0.5, 2) : x));
        const of = { exact, predicted, bound, format: 'bf16', columns, sizes: null } as const;
        const made = boundOfPrediction(of, 1);
        const lengths = (values: Float64Array) =>
          isZero.map((_, row) => lengthOf(rowOf(values, row, columns)));
        const [ofExact, ofPredicted] = [lengths(exact), lengths(predicted)];
        const usual = Object.fromEntries(
          names.map((name) => {
            const shares = lengths(bound[name]).map((length, row) => length / ofExact[row]);
            return [name, medianOf(shares.filter((_, row) => !isZero[row]))];
          }),
        ) as Record<(typeof names)[number], number>;
        predicted.forEach((x, i) => {
          const row = Math.floor(i / columns);
          // The rounding of a number that is another than the exact one is open.
          const half = ulp(formats.bf16, x) / 2;
          for (const name of names) {
            if (!isZero[row]) {
              expectAlike(made[name][i], bound[name][i], name);
              continue;
            }
            const share = (usual[name] * ofPredicted[row]) / Math.sqrt(columns);
            const wanted = {
              total: share + half,
              systematic: share,
              known: share,
              deviation: Math.hypot(share, half / Math.sqrt(3)),
            };
            expectAlike(made[name][i], wanted[name], name);
          }
        });
      }),
      { numRuns: 50 },
    );
  });
});
