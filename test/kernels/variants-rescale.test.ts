import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionProblem } from '../../properties/index.js';
import type { Problem } from '../../src/problem/index.js';
import { runFa4, runVariant, scoredProblem, wavyProblem } from './variants-problems.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** 256 keys of which the first 128, visited last, score `growth` times the query and the rest 0. */
const growing = (
  growth: number,
  queries = 1,
  query: (row: number) => number = () => 1,
  value: (row: number) => number = () => 1,
): Problem =>
  scoredProblem({ queries, keys: 256, query, key: (j) => (j < 128 ? growth : 0), value });

describe('stale-zero-max', () => {
  /** Queries 0 to 127 see no key of the block that is visited first. */
  const problem = (score: number) =>
    scoredProblem({ queries: 256, keys: 256, key: () => score, vDim: 2 }, { causal: true });

  it('has rows underflow whose scores are far below 0 and whose first block is masked', () => {
    const kernel = runFa4(problem(-200));
    const variant = runVariant('stale-zero-max', problem(-200));
    for (let row = 0; row < 256; row++) {
      expect(kernel.out[2 * row]).toBe(1);
      expect(kernel.lse[row]).toBeCloseTo(-200 * Math.LN2 + Math.log(row + 1), 3);
      expect(variant.out[2 * row]).toBe(row < 128 ? 0 : 1);
      expect(variant.lse[row]).toBe(row < 128 ? -Infinity : kernel.lse[row]);
    }
  });

  it('measures scores from 0: the last weight that is not flushed is 2^-126', () => {
    const last = runVariant('stale-zero-max', problem(-126));
    const lost = runVariant('stale-zero-max', problem(-127));
    expect(last.lse[0]).toBeCloseTo(-126 * Math.LN2, 3);
    expect(lost.lse[0]).toBe(-Infinity);
  });

  it('is not seen where scores are so far above 0 that the maximum is taken over', () => {
    expect(runVariant('stale-zero-max', problem(20)).bits).toEqual(runFa4(problem(20)).bits);
  });
});

describe('the threshold of the rescale', () => {
  const problems = attentionProblem({
    formats: ['bf16'],
    regimes: ['normal'],
    softcap: false,
    queries: { max: 8 },
    keys: { max: 400 },
    qkDim: { max: 20 },
    vDim: { max: 8 },
    // With a negative scale a maximum that grows has a positive lag, which may reach the threshold.
    scales: ['default', 'zero', 'odd'],
  });

  it('compared with the wrong sign never skips', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const always = runFa4(problem, { 'rescale.threshold': '0' });
        const variant = runVariant('rescale-threshold-sign', problem);
        expect(variant.bits).toEqual(always.bits);
        expect(variant.counters).toEqual(always.counters);
      }),
      { numRuns: scaled(5) },
    );
  });

  it('inverted never rescales where the maximum grows far, and overflows', () => {
    for (const growth of [9, 100, 140]) {
      const problem = growing(growth);
      const never = runFa4(problem, { 'rescale.threshold': 'inf' });
      const variant = runVariant('rescale-threshold-inverted', problem);
      expect(variant.bits).toEqual(never.bits);
      expect(variant.counters).toMatchObject({ rowRescales: 0, rowRescalesSkipped: 1 });
      if (growth < 128) expect(variant.out[0]).toBe(1);
      else expect(variant.out[0]).toBeNaN();
    }
    expect(runFa4(growing(140)).out[0]).toBe(1);
  });

  it('inverted keeps −∞ where the first block is masked', () => {
    const problem = scoredProblem({ queries: 256, keys: 256, vDim: 1 }, { causal: true });
    const [kernel, variant] = [runFa4(problem), runVariant('rescale-threshold-inverted', problem)];
    kernel.out.forEach((x, row) => {
      if (row < 128) expect(variant.out[row]).toBeNaN();
      else expect(variant.out[row]).toBe(x);
    });
  });

  it('inverted rescales where the maximum grows little', () => {
    const variant = runVariant('rescale-threshold-inverted', growing(5));
    expect(variant.bits).toEqual(runFa4(growing(5), { 'rescale.threshold': '0' }).bits);
  });
});

describe('α on one of the two', () => {
  const old = 2 ** -16;

  it('not on l: the keys before weigh as if the maximum had not grown', () => {
    const { out, lse } = runVariant('alpha-not-on-sum', growing(16));
    expect(lse[0]).toBeCloseTo(16 * Math.LN2 + Math.log(256), 4);
    expect(out[0]).toBeCloseTo((1 + old) / 2, 2);
  });

  it('not on O: the output is too large by what they had', () => {
    const kernel = runFa4(growing(16));
    const { out, bits } = runVariant('alpha-not-on-output', growing(16));
    expect(bits.lse).toEqual(kernel.bits.lse);
    expect(kernel.out[0]).toBe(1);
    expect(out[0]).toBeCloseTo(2 / (1 + old), 2);
  });

  it.each(['alpha-not-on-sum', 'alpha-not-on-output'])('%s: not seen without a rescale', (id) => {
    expect(runVariant(id, growing(8)).bits).toEqual(runFa4(growing(8)).bits);
  });
});

describe('alpha-of-other-stage', () => {
  /** Maxima grow by 16 in the first tile and by 12 in the second; the keys before have V = 1. */
  const problem = (queries: number) =>
    growing(
      16,
      queries,
      (row) => (row < 128 ? 1 : 0.75),
      (key) => (key < 128 ? 0 : 1),
    );

  inTurn("multiplies each tile's output by the other's factor, and no row sum", () => {
    const kernel = runFa4(problem(256));
    const variant = runVariant('alpha-of-other-stage', problem(256));
    expect(variant.bits.lse).toEqual(kernel.bits.lse);
    kernel.out.forEach((x, i) =>
      expect(variant.out[i]).toBe(i < 128 * 8 ? x * 2 ** 4 : x / 2 ** 4),
    );
  });

  it('finds 1 for rows that the other tile has not', () => {
    const kernel = runFa4(problem(130));
    const variant = runVariant('alpha-of-other-stage', problem(130));
    expect(variant.out[0]).toBe(kernel.out[0] * 2 ** 4);
    expect(variant.out[2 * 8]).toBe(kernel.out[2 * 8] * 2 ** 16);
  });

  inTurn('is not seen in a CTA of one tile, nor without a rescale', () => {
    for (const unseen of [problem(128), growing(8, 256)])
      expect(runVariant('alpha-of-other-stage', unseen).bits).toEqual(runFa4(unseen).bits);
  });
});

describe('rescale-needs-all-lanes', () => {
  const only = (rows: (row: number) => boolean) => growing(16, 64, (row) => (rows(row) ? 1 : 0));

  it('leaves out the rows whose warp does not need it as a whole', () => {
    const problem = only((row) => row === 5 || row >= 32);
    const kernel = runFa4(problem);
    const variant = runVariant('rescale-needs-all-lanes', problem);
    expect(variant.bits.lse).toEqual(kernel.bits.lse);
    kernel.out.forEach((x, i) => {
      const isLeftOut = Math.floor(i / 8) === 5;
      expect(variant.out[i]).toBeCloseTo(isLeftOut ? 2 / (1 + 2 ** -16) : x, 2);
    });
    expect(variant.counters).toMatchObject({ warpRescales: 1, warpRescalesSkipped: 1 });
  });

  it('is not seen where all lanes need it', () => {
    const problem = only(() => true);
    expect(runVariant('rescale-needs-all-lanes', problem).bits).toEqual(runFa4(problem).bits);
  });
});

describe('operands of another block or head', () => {
  /** Heads, or blocks of 128 rows, of a tensor taken from elsewhere in it. */
  function pieces(tensor: Problem['k'], size: number, from: readonly number[]): Uint16Array {
    const data = tensor.data as Uint16Array;
    const length = size * tensor.shape[2];
    return Uint16Array.from(
      from.flatMap((index) => [...data.subarray(index * length, (index + 1) * length)]),
    );
  }
  const blocks = wavyProblem([1, 1, 5, 384]);
  const shifted = (name: 'k' | 'v'): Problem => ({
    ...blocks,
    [name]: { ...blocks[name], data: pieces(blocks[name], 128, [0, 0, 1]) },
  });

  it('ring-refilled-keys has the K of the block visited next', () => {
    const variant = runVariant('ring-refilled-keys', blocks);
    expect(variant.bits).toEqual(runFa4(shifted('k')).bits);
    expect(variant.bits.lse).not.toEqual(runFa4(blocks).bits.lse);
  });

  it('ring-refilled-values has the V of the block visited next', () => {
    const variant = runVariant('ring-refilled-values', blocks);
    expect(variant.bits).toEqual(runFa4(shifted('v')).bits);
    expect(variant.bits.lse).toEqual(runFa4(blocks).bits.lse);
    expect(variant.bits.out).not.toEqual(runFa4(blocks).bits.out);
  });

  it('wrong-kv-head takes groups for interleaved', () => {
    const problem = wavyProblem([6, 2, 4, 30]);
    const expanded = (from: readonly number[]): Problem => ({
      ...problem,
      k: { ...problem.k, shape: [6, 30, 16], data: pieces(problem.k, 30, from) },
      v: { ...problem.v, shape: [6, 30, 16], data: pieces(problem.v, 30, from) },
    });
    expect(runFa4(problem).bits).toEqual(runFa4(expanded([0, 0, 0, 1, 1, 1])).bits);
    expect(runVariant('wrong-kv-head', problem).bits).toEqual(
      runFa4(expanded([0, 1, 0, 1, 0, 1])).bits,
    );
  });
});
