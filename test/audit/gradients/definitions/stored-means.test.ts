import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyGradientPremises } from '../../../../src/audit/gradients/bounds/gradient-premises.js';
import { pairArithmetic } from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { createStoredMean } from '../../../../src/audit/gradients/bounds/stored-mean.js';
import { formats, round } from '../../../../src/formats/index.js';
import { problemShape } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';
import { expectAlike } from './random-pairs.js';
import { storedMeanOf } from './stored-mean-of.js';

const vDim = 3;
const problem = filledProblem({ queries: 1, keys: 4, dim: 2, vDim, format: 'fp32' }, () => 1);
const usual = anyGradientPremises(problem, 'fp32');

/** D of a row by premises that round its products, its sum or both. */
function meanBy(changes: Partial<typeof usual>) {
  const premises = { ...usual, delta: 'stored-output' as const, ...changes };
  const arithmetic = pairArithmetic(problem, problemShape(problem), premises);
  const made = createStoredMean(premises, arithmetic);
  return {
    made,
    defined: (dout: Float64Array, out: Float64Array, mean: number) =>
      storedMeanOf(premises, arithmetic, dout, out, mean),
  };
}

/** Two numbers of fp32 whose product is so little beyond halfway between two of bf16 that fp32 loses it. */
const beyondHalfway = fc
  .tuple(fc.integer({ min: 17, max: 21 }), fc.integer({ min: -4, max: 4 }), fc.boolean())
  .map(([small, exponent, isNegative]) => {
    const sign = isNegative ? -1 : 1;
    return [
      sign * 2 ** exponent * (1 + 2 ** -small),
      1 + 2 ** -8 - 2 ** -small,
      // The product is 1 + 2^-8 + 2^(-8 - small) - 2^(-2 small), times the sign and the power.
      sign * 2 ** exponent,
    ] as const;
  });

const numbers = fc
  .array(fc.double({ min: -2, max: 2, noNaN: true }), { minLength: vDim, maxLength: vDim })
  .map((row) => Float64Array.from(row, Math.fround));

describe('D of a stored O in fp32, whose products are rounded to bf16', () => {
  it('is open by half the distance of two numbers where fp32 may round the product first', () => {
    const { made } = meanBy({ deltaProducts: 'bf16' });
    fc.assert(
      fc.property(beyondHalfway, ([x, y, power]) => {
        const [dout, out] = [Float64Array.of(x, 0, 0), Float64Array.of(y, 0, 0)];
        expect([Math.fround(x), Math.fround(y)]).toEqual([x, y]);
        const ends = [power, power * (1 + 2 ** -7)];
        expect(round(formats.bf16, x * y)).toBe(ends[1]);
        expect(round(formats.bf16, Math.fround(x * y))).toBe(ends[0]);
        const { shift, worst, typical } = made(dout, out, 0);
        expect(shift).toBe((ends[0] + ends[1]) / 2);
        // Both are within the error.
        for (const end of ends) expect(Math.abs(end - shift)).toBeLessThanOrEqual(worst);
        expect(typical).toBeGreaterThanOrEqual(Math.abs(power) * 2 ** -8);
      }),
    );
  });

  it.each([
    ['products', { deltaProducts: 'bf16' }],
    ['the sum', { deltaSums: 'bf16' }],
    ['both', { deltaProducts: 'bf16', deltaSums: 'fp16' }],
  ] as const)('is that of Theorem 5 where what is rounded is %s', (_, changes) => {
    const { made, defined } = meanBy(changes);
    const isOpen = fc.option(beyondHalfway, { nil: null });
    fc.assert(
      fc.property(
        numbers,
        numbers,
        isOpen,
        fc.integer({ min: 0, max: 2 }),
        (dout, out, open, at) => {
          if (open !== null) [dout[at], out[at]] = open;
          const found = made(dout, out, 0.3);
          for (const [name, x] of Object.entries(defined(dout, out, 0.3)))
            expectAlike(found[name as 'worst'], x, name);
        },
      ),
    );
  });
});
