import { describe, expect, it } from 'vitest';
import { runFa4, runVariant, scoredProblem, wavyProblem } from './variants-problems.js';

describe('empty-split', () => {
  const problem = wavyProblem([1, 1, 5, 256]);

  it('is NaN where there are more splits than blocks, with the right LSE', () => {
    const kernel = runFa4(problem, { splits: '4' });
    expect(kernel.out.every(Number.isFinite)).toBe(true);
    const variant = runVariant('empty-split', problem);
    expect(variant.out.every(Number.isNaN)).toBe(true);
    expect(variant.bits.lse).toEqual(kernel.bits.lse);
  });

  it('is not seen where every split has a block', () => {
    const variant = runVariant('empty-split', problem, { splits: '2' });
    expect(variant.bits).toEqual(runFa4(problem, { splits: '2' }).bits);
  });
});

describe('fp8-lazy-saturation', () => {
  /** The block visited last scores `growth` above the one before it. */
  const problem = (growth: number, format: 'e4m3' | 'e5m2') =>
    scoredProblem({ queries: 1, keys: 256, key: (j) => (j < 128 ? growth : 0), format });

  it('shrinks the output by what saturates, and leaves the LSE', () => {
    const kernel = runFa4(problem(3, 'e4m3'));
    const variant = runVariant('fp8-lazy-saturation', problem(3, 'e4m3'));
    expect(kernel.out[0]).toBe(1);
    // 2^(8 + 3) is held as 448 in P and whole in l.
    expect(variant.out[0]).toBeCloseTo((2 ** 8 + 448) / (2 ** 8 + 2 ** 11), 2);
    expect(variant.lse[0]).toBeCloseTo(kernel.lse[0], 5);
  });

  it.each([
    ['e5m2 has the range', problem(3, 'e5m2')],
    ['the maximum grows so far that it is taken over', problem(5, 'e4m3')],
  ])('is not seen where %s', (_, unseen) => {
    expect(runVariant('fp8-lazy-saturation', unseen).out).toEqual(runFa4(unseen).out);
  });
});

describe('fp8-p-underflow', () => {
  const problem = (low: number) =>
    scoredProblem({ queries: 1, keys: 301, key: (j) => (j === 300 ? 0 : low), format: 'e4m3' });

  it('loses weights below half of the smallest subnormal, 2^-10, but for the row sum', () => {
    const kernel = runFa4(problem(-11));
    const variant = runVariant('fp8-p-underflow', problem(-11));
    expect(kernel.out[0]).toBe(1);
    expect(variant.out[0]).toBeCloseTo(1 / (1 + 300 * 2 ** -11), 2);
    expect(variant.lse[0]).toBeCloseTo(kernel.lse[0], 5);
  });

  it('is not seen where weights are numbers of e4m3 either way', () => {
    expect(runVariant('fp8-p-underflow', problem(-9)).out).toEqual(runFa4(problem(-9)).out);
  });
});
