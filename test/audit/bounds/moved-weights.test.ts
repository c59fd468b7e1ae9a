import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { moveWeights } from '../../../src/audit/bounds/coarse/moved-weights.js';

/** Scores from far below to the largest, and errors from next to nothing to all octaves. */
const key = fc.record({
  score: fc.oneof(
    fc.double({ min: -3, max: 3, noNaN: true }),
    fc.double({ min: -60, max: 5, noNaN: true }),
    fc.constantFrom(-46, -900),
  ),
  ofDots: fc.constantFrom(0, 2 ** -20, 0.25, 2, 40),
  ofExponents: fc.constantFrom(0, 2 ** -20, 0.125, 1, 900),
  own: fc.constantFrom(0, 2 ** -40, 2 ** -10),
  /** The place of a kernel's error between the largest of either sign; and that of the part which its block shares. */
  error: fc.double({ min: -1, max: 1, noNaN: true }),
  shared: fc.constantFrom(-1, 1, 0.5),
});

const drawns = fc.record({
  keys: fc.array(key, { minLength: 1, maxLength: 7 }),
  common: fc.constantFrom(0, 0.125, 3),
  dots: fc.constantFrom(0, 0.5, 1),
  exponents: fc.constantFrom(0, 0.25, 1),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

/** ln Σ e^x. */
function logSum(all: readonly number[]): number {
  const most = Math.max(...all);
  return most + Math.log(all.reduce((sum, x) => sum + Math.exp(x - most), 0));
}

function movedBy({ keys, common, dots, exponents }: Drawn) {
  const numbers = (of: 'score' | 'ofDots' | 'ofExponents' | 'own') =>
    Float64Array.from(keys, (one) => one[of]);
  const exact = logSum(keys.map(({ score }) => score));
  const found = moveWeights(
    {
      scores: numbers('score'),
      ofDots: numbers('ofDots'),
      ofExponents: numbers('ofExponents'),
      own: numbers('own'),
      common,
    },
    exact,
    { dots, exponents },
  );
  const errors = keys.map((one) => dots * one.ofDots + exponents * one.ofExponents + one.own);
  const top = keys.reduce((best, { score }, j) => (score > keys[best].score ? j : best), 0);
  const logarithms = keys.map(({ score }) => score - exact);
  return { found, errors, shared: exponents * common, top, logarithms };
}

/** Expects numbers alike but for roundings of their exponents. */
function expectAlike(found: number, wanted: number) {
  if (
    found === wanted ||
    (Number.isFinite(wanted) && Math.abs(found - wanted) <= 1e-9 * Math.abs(wanted))
  )
    return;
  expect(found).toBe(wanted);
}

describe('weights whose exponents are off', () => {
  it('move by what Theorem 9 says', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const { found, errors, shared, top, logarithms } = movedBy(drawn);
        // Two keys' errors in turn, and twice what blocks share.
        const apart = errors.map((error) => error + errors[top] + 2 * shared);
        let least = Math.exp(logarithms[top] - drawn.keys[top].own);
        for (const [j, logarithm] of logarithms.entries()) {
          const relative = logarithm - logarithms[top] + apart[j];
          const contends = j === top || relative >= -45;
          expect(found.contends[j]).toBe(Number(contends));
          expectAlike(found.rest[j], contends ? 0 : Math.exp(relative));
          if (j === top) {
            expect(found.moved[j]).toBe(0);
            continue;
          }
          const weight = Math.exp(logarithm);
          const isNothing = weight === 0 && Math.expm1(apart[j]) === Infinity;
          expectAlike(
            found.moved[j],
            isNothing ? Math.exp(logarithm + apart[j]) : weight * Math.expm1(apart[j]),
          );
          least += Math.exp(logarithm - apart[j]);
        }
        expectAlike(found.least, least);
        const upper = logSum(logarithms.map((x, j) => x + errors[j]));
        const lower = -logSum(logarithms.map((x, j) => x - errors[j]));
        const wanted = Math.max(0, Math.max(upper, lower) + shared);
        expect(Math.abs(found.ofLse - wanted)).toBeLessThanOrEqual(1e-12 + 1e-12 * wanted);
      }),
      { numRuns: 150 },
    );
  });

  it('are within it whatever the errors are', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const { found, errors, shared, top, logarithms } = movedBy(drawn);
        const off = drawn.keys.map((one, j) => one.error * errors[j] + one.shared * shared);
        const moved = logarithms.map((x, j) => x + off[j]);
        expect(Math.abs(logSum(moved))).toBeLessThanOrEqual(found.ofLse * (1 + 1e-9) + 1e-9);
        let sum = 0;
        for (const [j, x] of moved.entries()) {
          // The largest weight stays.
          const scaled = Math.exp(x - off[top]);
          sum += scaled;
          const by = Math.abs(scaled - Math.exp(logarithms[j]));
          expect(by).toBeLessThanOrEqual(found.moved[j] * (1 + 1e-9) + 1e-12);
          if (found.contends[j] === 0)
            expect(Math.exp(x - moved[top])).toBeLessThanOrEqual(found.rest[j] * (1 + 1e-9));
        }
        expect(found.least).toBeLessThanOrEqual(sum * (1 + 1e-9));
      }),
      { numRuns: 150 },
    );
  });
});
