import { describe, expect, it } from 'vitest';
import { attentionOracle, levels } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { Problem, Window } from '../../../src/problem/index.js';
import { singleHead, tensorOfHeads } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';
import { sees } from './reference-attention.js';

const inTurn = turns(import.meta.url);

/** A problem of equal scores whose values name their keys: O is the mean of the visible indices. */
function indexing(
  queries: number,
  keys: number,
  settings: { readonly causal?: boolean; readonly window?: Window | null },
): Problem {
  return singleHead(
    'fp32',
    {
      q: Array.from({ length: queries }, () => [0]),
      k: Array.from({ length: keys }, () => [1]),
      v: Array.from({ length: keys }, (_, j) => [j + 1]),
    },
    settings,
  );
}

const lengths = [1, 2, 63, 64, 65, 129];
const windows: (Window | null)[] = [
  null,
  { left: 0, right: 0 },
  { left: -1, right: 0 },
  { left: 0, right: -1 },
  { left: -1, right: -1 },
  { left: 3, right: 2 },
  { left: 64, right: -1 },
  { left: 63, right: 65 },
  { left: 1000, right: 1000 },
];

describe('masks', () => {
  const cases = windows.flatMap((window) => [true, false].map((causal) => ({ causal, window })));

  inTurn.each(cases)(
    '$causal, $window: each row has the mean and the count of its keys',
    (settings) => {
      for (const queries of lengths)
        for (const keys of lengths) {
          const problem = indexing(queries, keys, settings);
          const {
            level,
            quantities: {
              out: { values: out, radius: outRadius, magnitude },
              lse: { values: lse, radius: lseRadius },
            },
          } = attentionOracle(problem);
          const expected = Array.from({ length: queries }, (_, i) => {
            const seen = Array.from({ length: keys }, (_, j) => j).filter((j) =>
              sees(problem, i, j),
            );
            const count = seen.length;
            return { count, mean: seen.reduce((sum, j) => sum + j + 1, 0) / Math.max(count, 1) };
          });
          const faults = expected.filter(({ count, mean }, i) =>
            count === 0
              ? out[i] !== 0 ||
                outRadius[i] !== 0 ||
                magnitude[i] !== 0 ||
                lse[i] !== -Infinity ||
                lseRadius[i] !== 0 ||
                levels[level[i]] !== 'empty'
              : !(Math.abs(out[i] - mean) < 1e-12 * mean) ||
                !(Math.abs(lse[i] - Math.log(count)) < 1e-12) ||
                levels[level[i]] !== 'fp64',
          );
          expect({ queries, keys, faults }).toEqual({ queries, keys, faults: [] });
        }
    },
  );

  it('align to the bottom right: the last query sees the last key', () => {
    const {
      quantities: {
        out: { values: out },
      },
    } = attentionOracle(indexing(3, 5, { causal: true, window: { left: 0, right: -1 } }));
    expect([...out]).toEqual([3, 4, 5]);
  });
});

describe('heads and batches', () => {
  it.each([
    [1, 1],
    [4, 1],
    [4, 2],
    [6, 3],
    [3, 3],
  ])('%i query heads over %i kv heads: head h reads kv head ⌊h · kv / heads⌋', (heads, kvHeads) => {
    for (const batch of [1, 2, 3]) {
      const perHead = (count: number, rows: number, value: (b: number, h: number) => number) =>
        Array.from({ length: batch }, (_, b) =>
          Array.from({ length: count }, (_, h) =>
            Array.from({ length: rows }, () => [value(b, h)]),
          ),
        );
      const problem: Problem = {
        q: tensorOfHeads(
          'bf16',
          perHead(heads, 2, () => 1),
          1,
        ),
        k: tensorOfHeads(
          'bf16',
          perHead(kvHeads, 3, (b, h) => b + h),
          1,
        ),
        v: tensorOfHeads(
          'bf16',
          perHead(kvHeads, 3, (b, h) => 16 * b + h + 1),
          1,
        ),
        scale: 1,
        causal: false,
        window: null,
        softcap: null,
      };
      const {
        quantities: {
          out: { values: out },
          lse: { values: lse },
        },
      } = attentionOracle(problem);
      for (let b = 0; b < batch; b++)
        for (let h = 0; h < heads; h++)
          for (let i = 0; i < 2; i++) {
            const at = (b * heads + h) * 2 + i;
            const kv = Math.floor((h * kvHeads) / heads);
            expect(out[at]).toBeCloseTo(16 * b + kv + 1, 12);
            expect(lse[at]).toBeCloseTo(b + kv + Math.log(3), 12);
          }
    }
  });

  it('rank 3 is a batch of one', () => {
    const problem = indexing(3, 4, { causal: true });
    const flat = (t: Problem['q']) => ({ ...t, shape: t.shape.slice(1) });
    const flattened = { ...problem, q: flat(problem.q), k: flat(problem.k), v: flat(problem.v) };
    expect(attentionOracle(flattened)).toEqual(attentionOracle(problem));
  });

  it('is linear in the batch: each item comes out as it does alone', () => {
    const random = randomValues(7);
    const rows = (count: number, dim: number) =>
      Array.from({ length: count }, () => Array.from({ length: dim }, () => random.normal()));
    const items = [0, 1].map(() => ({ q: rows(5, 2), k: rows(70, 2), v: rows(70, 3) }));
    const settings = { scale: 0.7, causal: true, window: null, softcap: 3 };
    const together: Problem = {
      q: tensorOfHeads(
        'fp16',
        items.map(({ q }) => [q]),
        2,
      ),
      k: tensorOfHeads(
        'fp16',
        items.map(({ k }) => [k]),
        2,
      ),
      v: tensorOfHeads(
        'fp16',
        items.map(({ v }) => [v]),
        3,
      ),
      ...settings,
    };
    const alone = items.map((item) => attentionOracle(singleHead('fp16', item, settings)));
    const both = attentionOracle(together);
    expect([...both.quantities.out.values]).toEqual(
      alone.flatMap(
        ({
          quantities: {
            out: { values: out },
          },
        }) => [...out],
      ),
    );
    expect([...both.quantities.lse.values]).toEqual(
      alone.flatMap(
        ({
          quantities: {
            lse: { values: lse },
          },
        }) => [...lse],
      ),
    );
  });
});

describe('degenerate sizes', () => {
  it('no keys: zeros and −∞', () => {
    const problem: Problem = {
      q: tensorOfHeads('bf16', [[[[1], [2]]]], 1),
      k: { format: 'bf16', shape: [1, 1, 0, 1], data: new Uint16Array(0) },
      v: { format: 'bf16', shape: [1, 1, 0, 3], data: new Uint16Array(0) },
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    };
    const reference = attentionOracle(problem);
    expect([...reference.quantities.out.values]).toEqual([0, 0, 0, 0, 0, 0]);
    expect([...reference.quantities.lse.values]).toEqual([-Infinity, -Infinity]);
  });

  it('no queries, no batch, no value columns: empty answers', () => {
    const empty = (shape: number[]) =>
      ({ format: 'fp32', shape, data: new Float32Array(0) }) as const;
    const full = (shape: number[]) =>
      ({
        format: 'fp32',
        shape,
        data: new Float32Array(shape.reduce((a, b) => a * b)).fill(1),
      }) as const;
    const settings = { scale: 1, causal: true, window: null, softcap: null };
    const noQueries = { q: empty([1, 2, 0, 4]), k: full([1, 1, 3, 4]), v: full([1, 1, 3, 5]) };
    expect(attentionOracle({ ...noQueries, ...settings }).quantities.out.values).toHaveLength(0);
    const noBatch = { q: empty([0, 2, 3, 4]), k: empty([0, 1, 3, 4]), v: empty([0, 1, 3, 5]) };
    expect(attentionOracle({ ...noBatch, ...settings }).quantities.lse.values).toHaveLength(0);
    const noColumns = { q: full([1, 2, 3, 4]), k: full([1, 1, 3, 4]), v: empty([1, 1, 3, 0]) };
    const reference = attentionOracle({ ...noColumns, ...settings });
    expect(reference.quantities.out.values).toHaveLength(0);
    expect(reference.quantities.lse.values[0]).toBeCloseTo(4, 12);
  });

  it('a query of no dimensions weighs all keys alike', () => {
    const problem: Problem = {
      q: { format: 'fp32', shape: [1, 1, 2, 0], data: new Float32Array(0) },
      k: { format: 'fp32', shape: [1, 1, 3, 0], data: new Float32Array(0) },
      v: tensorOfHeads('fp32', [[[[1], [2], [6]]]], 1),
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    };
    const reference = attentionOracle(problem);
    expect(reference.quantities.out.values[1]).toBeCloseTo(3, 12);
    expect(reference.quantities.lse.values[1]).toBeCloseTo(Math.log(3), 12);
  });

  it('dimensions of one', () => {
    const {
      quantities: {
        out: { values: out },
        lse: { values: lse },
      },
    } = attentionOracle(singleHead('fp16', { q: [[2]], k: [[3]], v: [[5]] }));
    expect([out[0], lse[0]]).toEqual([5, 6]);
  });
});
