import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import {
  checkProblem,
  gatherListed,
  problemMask,
  problemShape,
  type KeyLists,
  type Problem,
} from '../../../src/problem/index.js';
import { filledProblem } from '../../setup/problems.js';

/** A problem of one head whose queries list some of the keys. */
function listedProblem(seed: number, queries: number, keys: number): Problem {
  const random = randomValues(seed);
  const length = random.integer(1, 6);
  const isBlocks = random.integer(0, 1) === 0;
  const blockKeys = isBlocks ? random.integer(2, 9) : 1;
  const count = Math.ceil(keys / blockKeys);
  const data = Array.from({ length: queries }, () => {
    const list = new Set<number>();
    for (let i = 0; i < Math.min(length, count); i++) list.add(random.integer(0, count - 1));
    return [...list, ...new Array<number>(length - list.size).fill(-1)];
  });
  const keyLists: KeyLists = {
    indices: { shape: [queries, 1, length], data: Int32Array.from(data.flat()) },
    blockKeys,
    blockQueries: 1,
  };
  const frame = { queries, keys, dim: 8, format: 'fp16' } as const;
  const causal = random.integer(0, 1) === 0 && isBlocks;
  const problem = filledProblem(frame, () => random.normal(), { keyLists, causal });
  return problem;
}

describe('the listed keys of a problem alone', () => {
  it('have the exact values of the problem, to the bit where all is fp64', () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.integer({ min: 1, max: 70 }), (seed, queries) => {
        const problem = listedProblem(seed, queries, 400);
        const gathered = gatherListed(problem, problemShape(problem));
        if (gathered === null) return;
        checkProblem(gathered);
        const [a, b] = [problem, gathered].map((one) => attentionOracle(one).quantities);
        a.out.values.forEach((x, i) => {
          const room = a.out.radius[i] + b.out.radius[i];
          expect(Math.abs(x - b.out.values[i])).toBeLessThanOrEqual(room);
        });
        a.lse.values.forEach((x, i) => {
          if (x === -Infinity) expect(b.lse.values[i]).toBe(x);
          else
            expect(Math.abs(x - b.lse.values[i])).toBeLessThanOrEqual(
              a.lse.radius[i] + b.lse.radius[i],
            );
        });
      }),
      { numRuns: 30 },
    );
  });

  it('take no more memory than is listed', () => {
    const problem = listedProblem(2, 40, 100_000);
    const gathered = gatherListed(problem, problemShape(problem));
    expect(gathered?.k.shape.at(-2)).toBeLessThanOrEqual(40 * 6 * 9);
    expect(gathered?.k.shape.at(-2)).toBeGreaterThan(0);
  });

  it('are those of a mask', () => {
    const problem = listedProblem(5, 9, 64);
    const { indices, blockKeys } = problem.keyLists!;
    const mask = problemMask(problem);
    const length = indices.shape.at(-1)!;
    for (let query = 0; query < 9; query++) {
      const listed = [...indices.data.subarray(query * length, (query + 1) * length)];
      const seen = Array.from({ length: 64 }, (_, key) =>
        mask.ranges(0, query).some(({ begin, end }) => begin <= key && key < end),
      );
      const limit = problem.causal ? query + 64 - 9 : 63;
      seen.forEach((is, key) =>
        expect(is).toBe(key <= limit && listed.includes(Math.floor(key / blockKeys))),
      );
    }
  });
});

describe('lists that mean nothing', () => {
  const refused = (data: readonly number[], changes: Partial<Problem> = {}) => {
    const keyLists = {
      indices: { shape: [2, 1, 3], data: Int32Array.from(data) },
      blockKeys: 1,
      blockQueries: 1,
      ...changes.keyLists,
    };
    const frame = { queries: 2, keys: 6, dim: 4 } as const;
    const problem = filledProblem(frame, () => 1, { ...changes, keyLists });
    return () => checkProblem(problem);
  };

  it('are refused with their place', () => {
    expect(refused([0, 1, 2, 3, 4, 6])).toThrow(
      'kv_index: entry 2 of the list of query 1 of batch 0 is to be a key, but is 6; there are 6',
    );
    expect(refused([0, -2, 2, 3, 4, 5])).toThrow('entry 1 of the list of query 0');
    expect(refused([0, 1, 0, 3, 4, 5])).toThrow('is 0, which is entry 0 too');
    expect(refused([5, 1, 2, 3, 4, -1], { causal: true })).toThrow(
      'entry 0 of the list of query 0 of batch 0 is to be a key, but is 5, which causal hides',
    );
    expect(refused([-1, 1, -1, 3, 4, 5], { causal: true })).not.toThrow();
    const short = { shape: [1, 1, 3], data: Int32Array.of(0, 1, 2) };
    expect(refused([], { keyLists: { indices: short, blockKeys: 1, blockQueries: 1 } })).toThrow(
      'kv_index has shape [1, 1, 3]; give it [1, 2, 1, n]',
    );
    expect(refused([0, 1, 2, 3, -1, -1], { keyLists: { blockKeys: 4 } as KeyLists })).toThrow(
      'block_index: entry 2 of the list of query 0 of batch 0 is to be a block of 4 keys, but is 2; there are 2',
    );
  });
});
