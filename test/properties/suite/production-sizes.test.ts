import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import {
  checkKernel,
  lawIds,
  laws,
  resolvePromises,
  type AttentionKernel,
  type KernelPromises,
} from '../../../properties/index.js';
import {
  lawCases,
  productionAspect,
  productionSizes,
} from '../../../properties/suite/law-cases.js';
import { usualTiling } from '../../../properties/problems/regimes/regime.js';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** The textbook kernel, but that on some problems the LSE is 1 too high. */
function wrongWhere(isHit: (shape: ProblemShape) => boolean): AttentionKernel {
  return (problem) => {
    const { out, lse } = runKernelModel('naive-fp32', problem);
    if (!isHit(problemShape(problem))) return { out, lse };
    return { out, lse: { ...lse, data: (lse.data as Float32Array).map((x) => x + 1) } };
  };
}

describe('a check by default finds what is wrong at the sizes of production only', () => {
  const faults = [
    ['head dimensions from 64', ({ qkDim }: ProblemShape) => qkDim >= 64],
    ['groups from 4', ({ groupSize }: ProblemShape) => groupSize >= 4],
    ['batches from 3', ({ batch }: ProblemShape) => batch >= 3],
    ['more than 256 queries', ({ queries }: ProblemShape) => queries > 256],
  ] as const;
  // One law of twenty-odd: others begin with other aspects.
  const scope = { laws: ['within-bound'] } as const;

  inTurn.each(sampled(faults, 2))('%s', async (_, isHit) => {
    const { laws: results } = await checkKernel(
      wrongWhere(isHit),
      { formats: ['bf16'] },
      { ...scope, seed: testSeed, bail: true, shrinkSeconds: 0 },
    );
    const failure = results.find(({ status }) => status === 'violated')?.failure;
    expect(failure?.round).toBeLessThanOrEqual(100);
    expect(isHit(problemShape(failure!.lawCase.problem))).toBe(true);
  });

  inTurn('and simplifies it to the smallest that shows it', async () => {
    const { laws: results } = await checkKernel(
      wrongWhere(({ batch, groupSize }) => batch >= 3 && groupSize >= 4),
      { formats: ['bf16'], causal: false, window: false },
      { ...scope, regimes: ['normal'], seed: 1, bail: true },
    );
    const failure = results.find(({ status }) => status === 'violated')!.failure!;
    expect(problemShape(failure.lawCase.problem)).toMatchObject({
      batch: 3,
      kvHeads: 1,
      groupSize: 4,
      queries: 1,
      qkDim: 1,
      vDim: 1,
    });
  });
});

describe('sizes of production', () => {
  it('are drawn once in eight turns, all of their aspects at the first', () => {
    for (const id of lawIds) {
      const rounds = Array.from({ length: 96 }, (_, i) => productionAspect(id, i + 1));
      expect(rounds.filter((aspect) => aspect !== null)).toHaveLength(12);
      expect(new Set(rounds).size).toBe(4);
    }
    expect(new Set(lawIds.map((id) => productionAspect(id, 4))).size).toBe(3);
  });

  const promising: readonly (readonly [name: string, promises: KernelPromises])[] = [
    ['nothing', {}],
    ['dims', { dims: [64, 128] }],
    ['small sizes', { sizes: { queries: { max: 4 }, keys: { max: 5 }, qkDim: { max: 3 } } }],
    ['no groups', { groupedHeads: false, causal: false }],
    ['some groups', { groupSizes: [2, 8] }],
    ['causal masks only', { causal: 'only', emptyRows: false }],
    ['multiples', { multiples: { keys: 64, queries: 32, qkDim: 16, vDim: 16 }, blockKeys: 64 }],
    ['multiples and groups', { multiples: { keys: 16 }, groupSizes: [1, 3], dims: [32, 96] }],
  ];
  inTurn.each(promising)(
    'keep the promises, and so does all that they shrink to: %s',
    (_, promises) => {
      const resolved = resolvePromises({ formats: ['bf16'], ...promises });
      const { sizes, dims, groupSizes, multiples, groupedHeads, causal } = resolved;
      const check = (problem: Problem) => {
        const shape = problemShape(problem);
        for (const [name, { min = 0, max = Infinity }] of Object.entries(sizes)) {
          expect(shape[name as keyof ProblemShape]).toBeGreaterThanOrEqual(min);
          expect(shape[name as keyof ProblemShape]).toBeLessThanOrEqual(max);
        }
        for (const [name, multiple] of Object.entries(multiples))
          expect(shape[name as keyof ProblemShape] % multiple, name).toBe(0);
        if (dims !== null) expect(dims).toContain(shape.qkDim);
        if (groupSizes !== null) expect(groupSizes).toContain(shape.groupSize);
        if (!groupedHeads) expect(shape.groupSize).toBe(1);
        if (causal !== true) expect(problem.causal).toBe(causal === 'only');
      };
      for (const production of [null, 'heads', 'dims', 'lengths'] as const)
        for (const id of ['within-bound', 'exact'] as const) {
          const drawnFrom = { regime: 'normal', specials: [], tiling: usualTiling } as const;
          const cases = lawCases(laws[id], resolved, { ...drawnFrom, production });
          const property = fc.property(cases, ({ problem }) => {
            check(problem);
            // Fails for all but the smallest, so that shrinking goes through many.
            return problemShape(problem).queries * problemShape(problem).keys <= 1;
          });
          const { counterexample, numShrinks } = fc.check(property, { seed: 1, numRuns: 4 });
          if (counterexample === null) continue;
          check(counterexample[0].problem);
          expect(numShrinks).toBeLessThan(200);
        }
    },
  );

  it('are as large as is promised', () => {
    const drawn = (aspect: 'heads' | 'dims' | 'lengths', promises: KernelPromises = {}) =>
      productionSizes(resolvePromises(promises), aspect);
    expect(drawn('dims')!.dims).toEqual([64, 96, 128, 192, 256]);
    expect(drawn('dims', { dims: [32, 80, 160] })!.dims).toEqual([80, 160]);
    expect(drawn('dims', { sizes: { qkDim: { max: 112 } } })!.dims).toEqual([64, 96]);
    expect(drawn('dims', { sizes: { vDim: { max: 32 } } })).toBeNull();
    expect(drawn('heads')).toMatchObject({ batch: { min: 3 }, groupSize: { min: 4, max: 8 } });
    expect(drawn('heads', { sizes: { batch: { max: 2 } } })!.batch).toEqual({ min: 2, max: 2 });
    expect(drawn('lengths')).toMatchObject({ queries: { min: 257 }, keys: { max: 385 } });
    expect(drawn('lengths', { multiples: { queries: 128 } })!.queries).toEqual({
      min: 384,
      max: 384,
    });
  });
});
