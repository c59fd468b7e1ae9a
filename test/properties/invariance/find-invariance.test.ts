import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dimensionNames,
  findInvariance,
  KernelFault,
  UnsupportedProblem,
  type AttentionKernel,
  type DimensionName,
  type Invariance,
} from '../../../properties/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { faultyKernels } from '../../kernels/features/index.js';
import { scaled } from '../../setup/effort.js';
import { definedKernel, variedProblem } from '../laws/try-law.js';
import {
  invariantKernel,
  plantedFaults,
  plantedKernel,
  servedProblem,
  splittingPromises,
  unsteadyKernel,
} from './planted-kernels.js';

const problem = servedProblem();

/** The results by dimension, each as `invariant`, `untried` or the change. */
function summary({ dimensions }: Invariance): Record<string, unknown> {
  return Object.fromEntries(
    dimensions.map(({ name, result, change }) => [
      name,
      change === null ? result : [change.from, change.to],
    ]),
  );
}

/** What is found of a kernel with one fault. */
function withFault(dimension: DimensionName, found: unknown): Record<string, unknown> {
  const others = dimensionNames.map((name) => [name, name === 'splits' ? 'untried' : 'invariant']);
  return { ...Object.fromEntries(others), [dimension]: found };
}

const planted = Object.keys(plantedFaults) as (keyof typeof plantedFaults)[];

describe('the search for a change', () => {
  it('finds none of a kernel that depends on each row alone, and says what it tried', async () => {
    const found = await findInvariance(invariantKernel, problem);
    expect(summary(found)).toEqual(withFault('splits', 'untried'));
    expect(found.invariant).toBe(true);
    const tried = found.dimensions.flatMap((one) => one.tried);
    expect(found.runs).toBe(tried.length);
    for (const { result, tried: values } of found.dimensions)
      if (result === 'invariant') expect(values.length).toBeGreaterThan(1);
  });

  it.each(planted)('sees a fault of %s in that dimension alone', async (dimension) => {
    const value = plantedFaults[dimension].values[0];
    const found = await findInvariance(plantedKernel(dimension, value), problem);
    expect(summary(found)).toEqual(withFault(dimension, [expect.any(Number), value]));
    expect(found.invariant).toBe(false);
  });

  it('finds a threshold exactly, wherever it is', async () => {
    const fault = fc.constantFrom(...planted).chain((dimension) =>
      fc.record({
        dimension: fc.constant(dimension),
        value: fc.constantFrom(...plantedFaults[dimension].values),
      }),
    );
    await fc.assert(
      fc.asyncProperty(fault, async ({ dimension, value }) => {
        const kernel = plantedKernel(dimension, value);
        const { dimensions } = await findInvariance(kernel, problem, { dimensions: [dimension] });
        const change = dimensions.find(({ name }) => name === dimension)?.change;
        const from = dimension === 'page-size' ? value / 2 : value - 1;
        expect([change?.from, change?.to]).toEqual([from, value]);
        // Both sides of it have been run.
        const tried = dimensions.find(({ name }) => name === dimension)?.tried;
        expect(tried).toEqual(expect.arrayContaining([from, value]));
        const bits = change?.bits;
        expect(bits?.rows).toHaveLength(bits?.comparedRows ?? 0);
        expect([bits?.out.differing, bits?.out.ulps]).toEqual([bits?.out.compared, 1]);
      }),
      { numRuns: scaled(60) },
    );
  });

  it.each([2, 3, 4, 8])(
    'finds the number of splits from which bits are others: %i',
    async (first) => {
      const found = await findInvariance(invariantKernel, problem, {
        promises: splittingPromises(first),
      });
      const before = { 2: 1, 3: 2, 4: 3, 8: 4 }[first];
      expect(summary(found)).toEqual(withFault('splits', [before, first]));
    },
  );
});

describe('a kernel that gives other bits when it is run again', () => {
  it.each([2, 3])('is told first, and nothing is claimed of the rest: run %i', async (run) => {
    const found = await findInvariance(unsteadyKernel(run), problem);
    expect(summary(found)['determinism']).toEqual([run - 1, run]);
    for (const { name, result } of found.dimensions)
      if (name !== 'determinism') expect(result).toBe('untried');
    expect(found.runs).toBeLessThanOrEqual(5);
  });

  it('is told where it does so in other surroundings only', async () => {
    let runs = 0;
    const kernel: AttentionKernel = (given) => {
      const isLarge = (given.sequences?.length ?? 0) >= 5;
      return plantedKernel('batch', isLarge && runs++ % 2 === 0 ? 5 : 1000)(given);
    };
    const found = await findInvariance(kernel, problem);
    const [determinism, ...others] = found.dimensions;
    expect(determinism.change).toMatchObject({ at: { dimension: 'batch', value: 5 } });
    expect(others.every(({ result }) => result === 'untried')).toBe(true);
  });
});

describe('what the search runs', () => {
  it('is attention of the same row: by definition nothing changes', async () => {
    const limits = {
      batch: 8,
      'neighbour-keys': 40,
      'neighbour-queries': 20,
      queries: 20,
    } as const;
    const found = await findInvariance(definedKernel, problem, { limits });
    expect(summary(found)).toEqual(withFault('splits', 'untried'));
    for (const features of [{}, { causal: true, window: { left: 3, right: 0 } }]) {
      const sizes = { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 7, dim: 2, vDim: 3 };
      const dense = { ...variedProblem({}, sizes), ...features };
      const ofDense = await findInvariance(definedKernel, dense, {
        limits,
        promises: { features: ['packed', 'paged'] },
      });
      expect(summary(ofDense)).toEqual(withFault('splits', 'untried'));
    }
  });

  it('sees splits of the keys that the batch decides', async () => {
    const kernel = faultyKernels.find(({ name }) => name === 'splits-by-batch')!.create();
    const sizes = { batch: 1, heads: 2, kvHeads: 1, queries: 1, keys: 200, dim: 8, vDim: 8 };
    const found = await findInvariance(kernel, variedProblem({}, sizes), {
      limits: { batch: 4 },
      dimensions: ['batch', 'heads'],
    });
    expect(summary(found)).toEqual({ determinism: 'invariant', batch: [1, 2], heads: 'invariant' });
  });

  it('finds what is different at one value alone if it is small, or every value is tried', async () => {
    const at = (value: number): AttentionKernel => {
      const changed = plantedKernel('neighbour-keys', value);
      return (given) =>
        given.sequences?.[1]?.keys === value && given.sequences.length === 2
          ? changed(given)
          : invariantKernel(given);
    };
    const change = async (value: number, every: boolean) =>
      summary(
        await findInvariance(at(value), problem, {
          dimensions: ['neighbour-keys'],
          limits: { 'neighbour-keys': 128 },
          every,
        }),
      )['neighbour-keys'];
    expect(await change(10, false)).toEqual([9, 10]);
    expect(await change(65, false)).toEqual([64, 65]);
    expect(await change(77, true)).toEqual([76, 77]);
  });
});

describe('a kernel that does not run everywhere', () => {
  it('is not asked of what it declines, and the change is between what it takes', async () => {
    const kernel: AttentionKernel = (given) => {
      const keys = given.sequences?.[1]?.keys ?? 64;
      if (given.sequences?.length === 2 && keys % 64 !== 0)
        throw new UnsupportedProblem('multiples of 64 only');
      return plantedKernel('neighbour-keys', 300)(given);
    };
    const found = await findInvariance(kernel, problem, { dimensions: ['neighbour-keys'] });
    expect(summary(found)['neighbour-keys']).toEqual([256, 320]);
    const [, { tried, declined }] = found.dimensions;
    expect(tried.every((value) => value % 64 === 0)).toBe(true);
    expect(declined.every((value) => value % 64 !== 0)).toBe(true);
  });

  it('fails at the first batch that it cannot compute', async () => {
    const kernel: AttentionKernel = (given) => {
      if ((given.sequences?.length ?? 0) >= 21) throw new Error('out of memory');
      return invariantKernel(given);
    };
    const found = await findInvariance(kernel, problem, { dimensions: ['batch'] });
    const [, batch] = found.dimensions;
    expect(batch).toMatchObject({ result: 'fails', change: { from: 20, to: 21, bits: null } });
    expect(batch.change?.fault).toContain('out of memory');
    expect(found.invariant).toBe(false);
  });

  it('says nothing of a problem that it has no output of', async () => {
    const failing: AttentionKernel = () => {
      throw new KernelFault('it crashed');
    };
    const declining: AttentionKernel = () => {
      throw new UnsupportedProblem('no pages');
    };
    await expect(findInvariance(failing, problem)).rejects.toThrow(RequestError);
    await expect(findInvariance(declining, problem)).rejects.toThrow(
      'the kernel does not take the problem: no pages',
    );
    await expect(findInvariance(invariantKernel, problem, { sequence: 3 })).rejects.toThrow(
      'sequences 0 to 2',
    );
  });
});

describe('the rows that change', () => {
  it('are those of the compared sequence, in its own places', async () => {
    const found = await findInvariance(plantedKernel('batch', 3), problem, {
      sequence: 2,
      dimensions: ['batch'],
    });
    const rows = found.dimensions[1].change?.bits?.rows ?? [];
    const { heads } = problemShape(problem);
    const expected = Array.from({ length: heads }, (_, head) =>
      [0, 1, 2].map((query) => ({ sequence: 2, head, query })),
    );
    expect(rows).toEqual(expected.flat());
  });

  it('are those of every sequence where the whole problem is compared', async () => {
    const found = await findInvariance(plantedKernel('page-order', 1), problem, {
      dimensions: ['page-order'],
    });
    const rows = found.dimensions[1].change?.bits?.rows ?? [];
    expect(rows.filter(({ head }) => head === 0)).toEqual([
      { sequence: 0, head: 0, query: 0 },
      { sequence: 0, head: 0, query: 1 },
      { sequence: 1, head: 0, query: 0 },
      { sequence: 2, head: 0, query: 0 },
      { sequence: 2, head: 0, query: 1 },
      { sequence: 2, head: 0, query: 2 },
    ]);
  });
});
