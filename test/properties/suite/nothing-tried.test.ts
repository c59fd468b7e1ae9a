import { describe, expect, it } from 'vitest';
import {
  assertAttentionKernel,
  checkKernel,
  lawIds,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
} from '../../../properties/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { exactKernel } from '../exact-kernel.js';

const inTurn = turns(import.meta.url);

const promises: KernelPromises = {
  formats: ['fp32'],
  sizes: {
    batch: { max: 2 },
    queries: { max: 6 },
    keys: { max: 8 },
    qkDim: { max: 4 },
    vDim: { max: 4 },
  },
};

describe('a kernel that takes no problem', () => {
  const declining: AttentionKernel = () => {
    throw new UnsupportedProblem('not today');
  };

  inTurn('obeys nothing, and every law that was to be tried says why it was not', async () => {
    const { pass, laws } = await checkKernel(declining, promises, { runs: 3, seed: 1 });
    expect(pass).toBe(false);
    expect(laws.map(({ id }) => id)).toEqual(lawIds.filter((id) => !id.startsWith('gradients-')));
    for (const law of laws) {
      expect(law).toMatchObject({ tried: 0, sizes: null, failure: null });
      expect(['skipped', 'untried']).toContain(law.status);
      expect(law.skipped).toMatch(/./);
    }
    const untried = laws.filter(({ status }) => status === 'untried');
    expect(untried.length).toBeGreaterThan(15);
    for (const { skipped } of untried)
      expect(skipped).toBe('none of its problems could be tried: not today');
  });

  inTurn('is no success of assertAttentionKernel', async () => {
    const attempt = assertAttentionKernel(declining, promises, { runs: 2, seed: 1 });
    await expect(attempt).rejects.toThrow(RequestError);
    await expect(attempt).rejects.toThrow(/^nothing was checked: .*not today/);
  });

  it('obeys nothing either where the time is up at once', async () => {
    const options = { runs: 3, seed: 1, seconds: 1e-9 };
    const { pass, outOfTime, laws } = await checkKernel(exactKernel, promises, options);
    expect({ pass, outOfTime }).toEqual({ pass: false, outOfTime: true });
    expect(laws[0]).toMatchObject({
      status: 'untried',
      tried: 0,
      skipped: 'the check ended before its first problem',
    });
    await expect(assertAttentionKernel(exactKernel, promises, options)).rejects.toThrow(
      /^nothing was checked: .*ended before its first problem/,
    );
  });
});

describe('a kernel that declines all grouped problems', () => {
  const ungrouped: AttentionKernel = (problem) => {
    if (problemShape(problem).groupSize > 1) throw new UnsupportedProblem('one head each only');
    return exactKernel(problem);
  };

  it('is not said to obey the law of grouped heads', async () => {
    const scope = { laws: ['within-bound', 'grouped-heads'], runs: 6, seed: 3 } as const;
    const { pass, laws } = await checkKernel(ungrouped, promises, scope);
    expect(pass).toBe(true);
    expect(laws[0]).toMatchObject({ status: 'holds' });
    // Where no element of a problem has a bound, the law is not tried on it.
    expect(laws[0].tried).toBeGreaterThan(3);
    expect(laws[0].sizes).toMatchObject({ groupSize: 1 });
    expect(laws[1]).toMatchObject({
      status: 'untried',
      runs: 6,
      tried: 0,
      unsupported: 6,
      sizes: null,
      skipped: 'none of its problems could be tried: one head each only',
    });
  });
});

describe('what a law was tried on', () => {
  inTurn('is what the kernel ran on, in every law', { timeout: 120_000 }, async () => {
    const shapes: ReturnType<typeof problemShape>[] = [];
    const watched: AttentionKernel = (problem) => {
      shapes.push(problemShape(problem));
      return exactKernel(problem);
    };
    for (const id of sampled(lawIds, 12)) {
      shapes.length = 0;
      const { laws } = await checkKernel(watched, promises, { laws: [id], runs: 4, seed: 2 });
      const { tried, runs, unsupported, sizes, status } = laws[0];
      expect({ id, tried }).toEqual({ id, tried: runs - unsupported });
      expect({ id, hasRun: shapes.length > 0 }).toEqual({ id, hasRun: tried > 0 });
      if (status !== 'holds') {
        expect({ id, status }).toEqual({ id, status: 'skipped' });
        continue;
      }
      expect(tried).toBeGreaterThan(0);
      for (const name of ['batch', 'heads', 'groupSize', 'queries', 'keys'] as const)
        expect(sizes![name]).toBeLessThanOrEqual(Math.max(...shapes.map((shape) => shape[name])));
    }
  });
});
