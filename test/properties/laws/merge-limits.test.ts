import { describe, expect, it } from 'vitest';
import { laws, type AttentionKernel } from '../../../properties/index.js';
import { admittedArithmetic } from '../../../properties/laws/within-bound.js';
import { decodeTensor, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention, rightMerge } from '../../kernels/features/index.js';
import { definedKernel, tryLaw, variedProblem } from './try-law.js';
import {
  upTo,
  sizes,
  problem,
  stored,
  type Changed,
  changedKernel,
  runOf,
  promises,
} from './changed-kernel.js';

describe('the merge of results', () => {
  /** A merge in fp64 of which one result is changed. */
  const merge = (change: (of: Changed) => void) => (parts: Parameters<typeof rightMerge>[0]) => {
    const wide = parts.map(({ out, lse }) => ({
      out: stored(decodeTensor(out), ...out.shape),
      lse: stored(decodeTensor(lse!), ...lse!.shape),
    }));
    const merged = rightMerge(wide);
    const [out, lse] = [decodeTensor(merged.out), decodeTensor(merged.lse!)];
    change({ out, lse });
    return { out: stored(out, ...merged.out.shape), lse: stored(lse, ...merged.lse!.shape) };
  };
  const tried = (choice: number, change: (of: Changed) => void) =>
    tryLaw('merging', { problem, choice }, { promises: { merge: merge(change) } });

  it('has parts of the first keys and of the others, and empty ones, in every order', async () => {
    const forms = [['∅', '∅'], ['a', '∅'], ['∅', 'b'], ['a', 'b'], ['a', '∅', 'b'], ['b']];
    const cuts = new Set<number>();
    for (const choice of upTo(laws.merging.choices)) {
      const runs: Problem[] = [];
      const seen: string[] = [];
      const kernel: AttentionKernel = (posed) => {
        runs.push(posed);
        return definedKernel(posed);
      };
      const results: Tensor[] = [];
      await tryLaw(
        'merging',
        { problem, choice },
        {
          kernel: async (posed) => {
            const given = await kernel(posed);
            results.push(given.lse!);
            return given;
          },
          promises: {
            merge: (parts) => {
              for (const { out, lse } of parts) {
                const isEmpty =
                  decodeTensor(lse!).every((x) => x === -Infinity) &&
                  decodeTensor(out).every((x) => x === 0);
                seen.push(
                  isEmpty
                    ? '∅'
                    : results.map((one) => String(one.data)).indexOf(String(lse!.data)) === 0
                      ? 'a'
                      : 'b',
                );
              }
              return rightMerge(parts);
            },
          },
        },
      );
      expect(seen).toEqual(forms[choice % 6]);
      const [first, second] = runs.map((posed) => problemShape(posed).keys);
      expect(first + second).toBe(5);
      cuts.add(first);
    }
    expect([...cuts].sort()).toEqual([1, 2, 3, 4]);
  });

  it('may be off by what fp32 leaves of weights and sums, and no more', async () => {
    const { exponential } = admittedArithmetic(runOf(problem), promises);
    // With two parts; their LSEs are largest in magnitude.
    for (const [choice, parts] of [
      [3, 2],
      [4, 3],
    ] as const) {
      const lses: number[] = [];
      const outs: Float64Array[] = [];
      await tryLaw(
        'merging',
        { problem, choice },
        {
          promises: {
            merge: (given) => {
              for (const { out, lse } of given) {
                lses.push(...decodeTensor(lse!).filter(Number.isFinite));
                outs.push(decodeTensor(out));
              }
              return rightMerge(given);
            },
          },
        },
      );
      const tolerance =
        2 * exponential.hardware + (Math.max(...lses.map(Math.abs)) + 16 * parts) * 2 ** -21;
      const whole = definedAttention(problem);
      const ofLse = tolerance * (1 + Math.abs(whole.lse[1]));
      const ofOut = tolerance * Math.max(...outs.map((out) => Math.abs(out[3])));
      for (const [name, at, limit] of [
        ['lse', 1, ofLse],
        ['out', 3, ofOut],
      ] as const)
        for (const sign of [1, -1]) {
          const status = async (factor: number) =>
            (await tried(choice, (of) => (of[name][at] += sign * factor * limit))).status;
          expect([await status(0.98), await status(1.02)], name).toEqual(['held', 'violated']);
        }
    }
  });

  it('of nothing is nothing, and LSEs of base 2 are named', async () => {
    for (const [x, status] of [
      [-Infinity, 'held'],
      [-1e30, 'violated'],
      [NaN, 'violated'],
    ] as const)
      expect((await tried(0, ({ lse }) => (lse[0] = x))).status).toBe(status);
    for (const [x, status] of [
      [0, 'held'],
      [1e-30, 'violated'],
      [NaN, 'violated'],
    ] as const)
      expect((await tried(0, ({ out }) => (out[0] = x))).status).toBe(status);
    const text = async (change: (of: Changed) => void) => {
      const found = await tried(3, change);
      return found.status === 'violated' ? found.statement : '';
    };
    expect(await text(({ lse }) => lse.forEach((x, i) => (lse[i] = x * Math.LOG2E)))).toContain(
      'it is in base 2',
    );
    expect(await text(({ lse }) => lse.forEach((x, i) => (lse[i] = x * 1.4)))).not.toContain(
      'base 2',
    );
    const base = (factor: number) =>
      tryLaw(
        'merging',
        { problem, choice: 3 },
        {
          promises: {
            merge: (parts) => {
              const scaled = parts.map(({ out, lse }) => ({
                out,
                lse: stored(
                  decodeTensor(lse!).map((x) => x * factor),
                  ...lse!.shape,
                ),
              }));
              const { out } = rightMerge(scaled);
              return { out, lse: rightMerge(parts).lse };
            },
          },
        },
      );
    const told = await Promise.all([Math.LN2, 0.8].map(base));
    expect(
      told.map((one) => one.status === 'violated' && one.statement.includes('to be in base 2')),
    ).toEqual([true, false]);
  });

  it('needs two keys, finite parts and their LSEs', async () => {
    const status = async (
      posed: Problem,
      kernel: AttentionKernel = definedKernel,
      multiples = {},
    ) =>
      (
        await tryLaw(
          'merging',
          { problem: posed, choice: 3 },
          { kernel, promises: { merge: rightMerge, lse: false, multiples } },
        )
      ).status;
    expect([
      await status(problem),
      await status(variedProblem({}, { ...sizes, keys: 2 })),
      await status(variedProblem({}, { ...sizes, keys: 1 })),
    ]).toEqual(['held', 'held', 'inapplicable']);
    expect(await status(variedProblem({}, { ...sizes, keys: 4 }), definedKernel, { keys: 4 })).toBe(
      'inapplicable',
    );
    for (const mask of [{ causal: true }, { window: { left: 2, right: 2 } }])
      expect(await status(variedProblem(mask, sizes))).toBe('inapplicable');
    expect(
      await status(problem, async (posed) => ({ out: (await definedKernel(posed)).out })),
    ).toBe('inapplicable');
    expect(
      await status(
        problem,
        changedKernel(({ out }) => (out[1] = NaN)),
      ),
    ).toBe('inapplicable');
  });

  it('splits: every number of them is judged, and compared with the next', async () => {
    const asked: number[] = [];
    const splits = (change: (count: number, out: Float64Array) => void) => ({
      counts: [1, 3, 4],
      kernel: (posed: Problem, count: number) => {
        asked.push(count);
        return changedKernel(({ out }) => change(count, out))(posed);
      },
    });
    const right = splits(() => undefined);
    const trial = (choice: number, strength: 'bits' | 'bound', of = right) =>
      tryLaw('split-counts', { problem, choice }, { strength, promises: { splits: of } });
    for (const choice of upTo(4)) expect((await trial(choice, 'bound')).status).toBe('held');
    expect(asked.splice(0)).toEqual([1, 3, 4, 1]);
    for (const choice of upTo(3)) await trial(choice, 'bits');
    expect(asked).toEqual([1, 3, 3, 4, 4, 1]);
    const uneven = await trial(
      1,
      'bits',
      splits((count, out) => count === 3 && (out[2] += 2 ** -40)),
    );
    expect(uneven.status === 'violated' && uneven.statement).toMatch(
      /^O at head 0, query 1, column 0 .* in 4 splits but .* in 3/,
    );
    expect(
      (
        await trial(
          1,
          'bound',
          splits((_, out) => (out[2] += 1)),
        )
      ).status,
    ).toBe('violated');
  });
});
