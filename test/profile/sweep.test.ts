import { describe, expect, it } from 'vitest';
import { sweep } from '../../src/profile/sweep.js';
import type { RescalePlan } from '../../src/profile/trade-offs/case-plans.js';
import { RequestError } from '../../src/request-error.js';

/** A plan for two problems of this head dimension. */
function planOf(dim: number): RescalePlan {
  const sizes = { queries: 4, keys: 40, dim, seed: 1 };
  const cases = (['bf16', 'fp16'] as const).map((format) => ({ format, regime: 'sink' as const }));
  return {
    kind: 'rescale',
    request: { ...sizes, regimes: ['sink'], formats: ['bf16', 'fp16'], architecture: 'sm_100' },
    cases,
    thresholds: [0, 8],
  };
}

const slices = [0, 1].map((i) => ({ first: i, last: i }));

describe.each([1, 2])('a sweep on %i threads', (threads) => {
  it('says of every slice what one thread says of it', async () => {
    const plan = planOf(16);
    const settled: unknown[] = [];
    await sweep(plan, slices, { threads }, (result) => {
      settled[result.first] = result.cases;
    });
    const alone: unknown[] = [];
    await sweep(plan, slices, {}, (result) => {
      alone[result.first] = result.cases;
    });
    expect(settled).toHaveLength(2);
    expect(settled).toEqual(alone);
  });

  it('refuses a plan that cannot be carried out with a RequestError', async () => {
    const refused = sweep(planOf(300), slices, { threads }, () => {});
    await expect(refused).rejects.toBeInstanceOf(RequestError);
    await expect(refused).rejects.toThrow(
      /^qk head dimension 30[01]; the fa4 model takes 1 to 256/,
    );
  });

  it('passes on what is thrown where results are settled', async () => {
    const failed = sweep(planOf(16), slices, { threads }, () => {
      throw new TypeError('not settled');
    });
    await expect(failed).rejects.toThrow(new TypeError('not settled'));
  });
});
