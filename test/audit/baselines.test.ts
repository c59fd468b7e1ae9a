import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { flashAttentionRule, usualChecks } from '../../src/audit/baselines.js';
import { filledProblem } from '../setup/problems.js';
import { handMadeReference } from './hand-made.js';

const problem = filledProblem({ queries: 2, keys: 1, dim: 1 }, () => 1);

/** The usual checks of two outputs, beside textbook attention that is exact. */
function checked(exact: readonly number[], out: readonly number[]) {
  const reference = handMadeReference({ queries: exact.length, out: (i) => exact[i] });
  const lowPrecision = Float64Array.from(exact);
  return usualChecks(problem, reference, Float64Array.from(out), 'fp32', { lowPrecision });
}

describe('the usual checks', () => {
  it('pass by cosine where the angle of output and oracle is small, whatever their lengths', () => {
    const largest = Math.acos(0.999);
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 2 * Math.PI, noNaN: true }),
        fc.double({ min: -20, max: 20, noNaN: true }),
        fc.double({ min: 0, max: 70, noNaN: true }),
        (at, log, times) => {
          // On either side of the largest angle, none next to it.
          const by = (times < 0.99 || times > 1.01 ? times : 0.99) * largest;
          const size = 2 ** log;
          const exact = [Math.cos(at), Math.sin(at)];
          const { cosine } = checked(exact, [size * Math.cos(at + by), size * Math.sin(at + by)]);
          expect(cosine.similarity).toBeCloseTo(Math.cos(by), 12);
          expect(cosine.pass).toBe(by < largest);
        },
      ),
    );
    expect(checked([0, 0], [0, 0]).cosine).toEqual({ pass: true, similarity: 1 });
    expect(checked([1, 0], [0, 0]).cosine.pass).toBe(false);
    expect(checked([1, 0], [NaN, 0]).cosine.pass).toBe(false);
  });

  it('count elements beyond 0.01 and 0.01 of the oracle', () => {
    for (const x of [0, 1, -3, 100]) {
      const most = 0.01 + 0.01 * Math.abs(x);
      const of = (error: number) => checked([x, 1], [x + error, 1]).allclose;
      for (const sign of [1, -1]) {
        expect(of(0.999 * sign * most)).toEqual({ pass: true, violations: 0 });
        expect(of(1.001 * sign * most)).toEqual({ pass: false, violations: 1 });
      }
      expect(of(NaN).violations).toBe(1);
    }
    expect(checked([Infinity, 1], [Infinity, 1]).allclose.pass).toBe(true);
    expect(checked([Infinity, 1], [1, 5]).allclose.violations).toBe(2);
  });

  it('give twice the error of textbook attention, three times with a softcap', () => {
    const exact = Float64Array.of(0, -4);
    const lowPrecision = Float64Array.of(2, -1);
    const rule = (error: number, softcap: number | null, slack = 0) =>
      flashAttentionRule({ ...problem, softcap }, exact, Float64Array.of(error, -4), {
        lowPrecision,
        format: 'fp32',
        slack,
      });
    for (const [softcap, factor] of [
      [null, 2],
      [5, 3],
    ] as const)
      for (const slack of [0, 7]) {
        const { allowance, lowPrecisionMaxError } = rule(0, softcap, slack);
        expect(lowPrecisionMaxError).toBe(3);
        // Adding and subtracting 0.3 takes a few units of 2^-24.
        expect(allowance).toBeGreaterThanOrEqual(3 * factor + slack);
        expect(allowance).toBeLessThan(3 * factor + slack + 2 ** -20);
        expect(rule(allowance, softcap, slack)).toMatchObject({ pass: true, maxError: allowance });
        expect(rule(-allowance - 0.01, softcap, slack).pass).toBe(false);
      }
    expect(rule(NaN, null)).toMatchObject({ pass: false, maxError: NaN });
    // In bf16, −4 + 0.3 is −3.703125, and 0 + 0.3 is 0.30078125: the larger error counts, twice.
    const coarse = flashAttentionRule(problem, exact, exact, {
      lowPrecision: exact,
      format: 'bf16',
    });
    const bf16 = (x: number, ulp: number) => Math.round(x / ulp) * ulp;
    const back = bf16(bf16(-3.7, 2 ** -6) - 0.3, 2 ** -5);
    const fromZero = bf16(0.3, 2 ** -9) - 0.3;
    const shaken = Math.max(Math.abs(back + 4), Math.abs(fromZero));
    expect(coarse.allowance / 2).toBeGreaterThanOrEqual(shaken * (1 - 2 ** -7));
    expect(coarse.allowance / 2).toBeLessThanOrEqual(shaken * (1 + 2 ** -7));
  });
});
