import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exp2Coefficients } from '../../kernels/index.js';
import { polynomialDegrees } from '../../src/profile/functions.js';
import {
  type Constraint,
  errorExtremes,
  largestRelativeError,
  minimaxExp2,
  relativeError,
  solveLinear,
} from '../../src/profile/minimax.js';
import { compareWithMinimax } from '../../src/profile/techniques/exp2-profile.js';

const constraints: readonly Constraint[] = ['c0 = 1', 'free'];
const cases = polynomialDegrees.flatMap((degree) =>
  constraints.map((constraint) => ({ degree, constraint })),
);
/** What the evaluation of an error may be off by. */
const certainty = 2 ** -48;

/** p(f)/2^f − 1 on a grid, by the language's own power. */
function largestOnGrid(coefficients: readonly number[], points = 2000): number {
  let largest = 0;
  for (let i = 0; i <= points; i++) {
    const f = i / points;
    const p = coefficients.reduceRight((sum, c) => sum * f + c, 0);
    largest = Math.max(largest, Math.abs(p * 2 ** -f - 1));
  }
  return largest;
}

describe.each(cases)('the best polynomial of degree $degree, $constraint', (example) => {
  const { degree, constraint } = example;
  const best = minimaxExp2(degree, constraint);
  const free = constraint === 'free' ? degree + 1 : degree;

  it('has an error that alternates at one point more than coefficients are free', () => {
    expect(best.coefficients).toHaveLength(degree + 1);
    if (constraint === 'c0 = 1') expect(best.coefficients[0]).toBe(1);
    expect(best.alternation).toHaveLength(free + 1);
    best.alternation.forEach(({ f, error }, i) => {
      expect(f >= 0 && f <= 1).toBe(true);
      expect(Math.abs(relativeError(best.coefficients, f) - error)).toBe(0);
      if (i > 0) {
        expect(f).toBeGreaterThan(best.alternation[i - 1].f);
        expect(Math.sign(error)).toBe(-Math.sign(best.alternation[i - 1].error));
      }
    });
  });

  it('has no larger error anywhere, and a lower bound that leaves no room', () => {
    expect(largestOnGrid(best.coefficients)).toBeLessThanOrEqual(best.largestError + certainty);
    expect(best.lowerBound).toBeLessThanOrEqual(best.largestError);
    expect(best.largestError - best.lowerBound).toBeLessThan(certainty);
    const smallest = Math.min(...best.alternation.map(({ error }) => Math.abs(error)));
    expect(best.lowerBound).toBe(smallest);
  });

  it('is not beaten by any other polynomial', () => {
    const change = fc.double({ min: -1e-3, max: 1e-3, noNaN: true });
    const lowest = constraint === 'free' ? 0 : 1;
    fc.assert(
      fc.property(
        fc.array(change, { minLength: degree + 1, maxLength: degree + 1 }),
        fc.integer({ min: 0, max: 30 }),
        (changes, halvings) => {
          const others = best.coefficients.map((c, k) =>
            k < lowest ? c : c + changes[k] / 2 ** halvings,
          );
          // At the alternation points alone every other polynomial is at least as bad.
          const errors = best.alternation.map(({ f }) => Math.abs(relativeError(others, f)));
          expect(Math.max(...errors)).toBeGreaterThanOrEqual(best.lowerBound - certainty);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe.each(polynomialDegrees)("FlashAttention-4's polynomial of degree %i", (degree) => {
  const { largestError, best, bestFree, excess, rounding } = compareWithMinimax(degree, 1e-3);

  it('is no better than the best with c0 = 1, which is no better than the best of all', () => {
    expect(Math.abs(largestError.error)).toBeGreaterThan(best.lowerBound);
    expect(best.largestError).toBeGreaterThan(bestFree.lowerBound);
    expect(excess).toBeGreaterThan(0);
    expect(excess).toBeLessThan(0.05);
  });

  it('has its largest error where it is said to be', () => {
    const coefficients = exp2Coefficients[degree];
    expect(largestOnGrid(coefficients)).toBeLessThanOrEqual(
      Math.abs(largestError.error) + certainty,
    );
    expect(largestOnGrid(coefficients)).toBeGreaterThan(0.9999 * Math.abs(largestError.error));
    expect(rounding).toBe(1e-3 - Math.abs(largestError.error));
  });
});

describe('extremes of the relative error', () => {
  it('are the ends and the points where it turns', () => {
    const coefficients = exp2Coefficients[3];
    const extremes = errorExtremes(coefficients);
    expect(extremes[0].f).toBe(0);
    expect(extremes.at(-1)!.f).toBe(1);
    for (const { f } of extremes.slice(1, -1)) {
      const [before, at, after] = [f - 1e-3, f, f + 1e-3].map((g) =>
        relativeError(coefficients, g),
      );
      expect((at - before) * (after - at)).toBeLessThan(0);
    }
    // A cubic that crosses 2^f at 0 turns at most three times.
    expect(extremes.length).toBe(5);
  });

  it('are those of an interval', () => {
    expect(largestRelativeError(exp2Coefficients[3], -0.5, 0.5).f).toBe(-0.5);
  });
});

describe('linear systems', () => {
  it('are solved', () => {
    const unknowns = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 3, maxLength: 3 });
    const matrix = fc.array(unknowns, { minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(matrix, unknowns, (rows, x) => {
        const [[a, b, c], [d, e, f], [g, h, i]] = rows;
        fc.pre(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) !== 0);
        const system = rows.map((row) => [...row, row.reduce((sum, r, k) => sum + r * x[k], 0)]);
        solveLinear(system).forEach((value, k) => expect(value).toBeCloseTo(x[k], 8));
      }),
    );
  });

  it('without a solution are refused', () => {
    expect(() =>
      solveLinear([
        [1, 1, 2],
        [1, 1, 3],
      ]),
    ).toThrow(/singular/);
  });
});
