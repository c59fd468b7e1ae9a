import { describe, expect, it } from 'vitest';
import { exactElements, firstInexact, hotPositions } from '../../../properties/laws/exact-rows.js';
import { exactOfHotKeys } from '../../../properties/laws/exact/exact.js';
import { exactOfOctaves } from '../../../properties/laws/exact/exact-exp2.js';
import { randomValues } from '../../../properties/problems/values.js';
import { tensor } from '../../setup/problems.js';
import { variedProblem } from './try-law.js';
import { upTo, problem, runOf } from './changed-kernel.js';

describe('elements that are exact', () => {
  const single = { batch: 1, heads: 1, kvHeads: 1, queries: 1, dim: 1, vDim: 1 } as const;
  /** The exact element of one row of keys with these exponents and values, null for none. */
  function exact(
    exponents: readonly number[],
    values: readonly number[],
    format: 'fp32' | 'fp16' | 'e4m3' = 'fp32',
  ) {
    const v = tensor(format, [1, 1, values.length, 1], (i) => values[i]);
    const posed = { ...variedProblem({}, { ...single, keys: values.length, format }), v };
    const run = runOf(posed);
    const outputs = {
      ...run.outputs,
      out: tensor(format === 'e4m3' ? 'fp16' : format, [1, 1, 1, 1], () => 0),
    };
    const { expected, count } = exactElements({ ...run, outputs }, () =>
      Float64Array.from(exponents),
    );
    expect(count).toBe(Number.isNaN(expected[0]) ? 0 : 1);
    return Number.isNaN(expected[0]) ? null : expected[0];
  }

  it('are means of products without rounding, with a sum of weights that is a power of two', () => {
    expect(exact([0, 0], [3, 5])).toBe(4);
    expect(exact([0, 0, 0], [3, 5, 1])).toBeNull();
    expect(exact([0, -1, -1], [4, 2, 6])).toBe(4);
    expect(exact([0, -Infinity], [3, 99])).toBe(3);
    expect(exact([0, 0], [0, 0])).toBe(0);
    // Of two signs a combine may cancel; one part in 2^12 is kept.
    expect([
      exact([0, 0], [3, -1]),
      exact([0, 0], [2 ** 12 - 1, 1]),
      exact([0, 0], [2 ** 12, 1]),
    ]).toEqual([null, 2 ** 11, null]);
    // Weights of 2^-9 and less are below what e4m3 holds as normal numbers, 2^-10 is not held at all.
    expect([exact([0, -9, -9], [1, 1, 1], 'e4m3'), exact([-1, -1], [1, 1], 'e4m3')]).toEqual([
      null,
      1,
    ]);
    expect([
      exact([0, 0], [2 ** -14, 2 ** -14], 'fp16'),
      exact([0, 0], [2 ** -14, 2 ** -15], 'fp16'),
    ]).toEqual([2 ** -14, null]);
    expect([exact([0, 0], [65504, 65504], 'fp16'), exact([0, 0], [2047, 2048], 'fp16')]).toEqual([
      65504,
      null,
    ]);
  });

  it('are named where they are wrong: the first and how many', () => {
    const run = { ...runOf(problem), out: Float64Array.of(1, 2, 3, 4, 5, 6, 7, 8) };
    const expected = Float64Array.of(1, NaN, 3, 5, NaN, 6, 9, 8);
    expect(firstInexact(run, { expected, count: 6 })).toMatch(
      /^O at head 0, query 1, column 1 is 4 but exactly 5, .*; 2 of 6 such/,
    );
    expect(firstInexact(run, { expected: run.out, count: 8 })).toBeNull();
  });

  it('are those of keys of score 0 among cold ones, and of whole octaves', () => {
    const posed = (k: readonly number[], scale: number, softcap: number | null = null) => ({
      ...variedProblem({ scale, softcap }, { ...single, keys: k.length }),
      q: tensor('fp32', [1, 1, 1, 1], () => 1),
      k: tensor('fp32', [1, 1, k.length, 1], (i) => k[i]),
      v: tensor('fp32', [1, 1, k.length, 1], (i) => 2 * i),
    });
    const hot = (...args: Parameters<typeof posed>) =>
      exactOfHotKeys(runOf(posed(...args))).expected[0];
    expect([hot([0, 0, -512], 1), hot([0, -512, -600], 1), hot([0, 0, -1024], 0.5)]).toEqual([
      1, 0, 1,
    ]);
    expect([
      hot([0, 0, -511], 1),
      hot([0, 0, 1], 1),
      hot([-600, -700], 1),
      hot([0, 0, -512], 1, 3),
      hot([0, 0, -1023], 0.5),
    ]).toEqual([NaN, NaN, NaN, NaN, NaN]);
    const octaves = (k: readonly number[], scale = Math.LN2, softcap: number | null = null) =>
      exactOfOctaves(runOf(posed(k, scale, softcap))).expected[0];
    expect([octaves([3, 2, 2]), octaves([0, 0]), octaves([5, 5, -800])]).toEqual([1.5, 1, 1]);
    expect([
      octaves([3, 2, 2], 0.7),
      octaves([3, 2, 2], Math.LN2, 9),
      octaves([0.5, 0.5]),
      octaves([5, 5, -4]),
      octaves([5, 5, -700]),
    ]).toEqual([NaN, NaN, NaN, NaN, NaN]);
    expect([octaves([4096, 4096]), octaves([4097, 4097])]).toEqual([1, NaN]);
  });

  it('have hot keys in any block, in all but the first, all but the last or one', () => {
    const blocks = upTo(200).map((seed) => {
      const positions = hotPositions(12, 4, randomValues(seed));
      expect(new Set(positions).size).toBe(positions.length);
      return [...new Set(positions.map((key) => key >> 2))].sort().join('');
    });
    expect(new Set(blocks)).toEqual(new Set(['012', '12', '01', '0', '1', '2']));
    for (const one of ['012', '12', '01'])
      expect(blocks.filter((text) => text === one).length).toBeGreaterThan(30);
    for (const seed of upTo(40))
      expect([...hotPositions(3, 4, randomValues(seed))].sort()).toEqual([0, 1, 2]);
    expect(
      new Set(upTo(60).map((seed) => hotPositions(12, 12, randomValues(seed))[0])).size,
    ).toBeGreaterThan(8);
  });
});
