import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { lazily } from '../../src/reuse/index.js';
import type * as Sweep from '../../src/profile/sweep.js';
import type { RescalePlan } from '../../src/profile/trade-offs/case-plans.js';
import type * as Errors from '../../src/request-error.js';
import { builtDist } from '../setup/built-dist.js';

/** A module as users run it: worker threads are started from files of JavaScript. */
async function imported<Module>(path: string): Promise<Module> {
  return (await import(pathToFileURL(join(await builtDist(), path)).href)) as Module;
}

const modules = lazily(async () => ({
  ...(await imported<typeof Sweep>('src/profile/sweep.js')),
  ...(await imported<typeof Errors>('src/request-error.js')),
}));
beforeAll(async () => {
  await modules();
});

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
    const { sweep } = await modules();
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
    const { sweep, RequestError } = await modules();
    const refused = sweep(planOf(300), slices, { threads }, () => {});
    await expect(refused).rejects.toBeInstanceOf(RequestError);
    await expect(refused).rejects.toThrow(
      /^qk head dimension 30[01]; the fa4 model takes 1 to 256/,
    );
  });

  it('passes on what is thrown where results are settled', async () => {
    const { sweep } = await modules();
    const failed = sweep(planOf(16), slices, { threads }, () => {
      throw new TypeError('not settled');
    });
    await expect(failed).rejects.toThrow(new TypeError('not settled'));
  });
});
