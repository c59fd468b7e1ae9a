import { describe, expect, it } from 'vitest';
import { decodeToFloat64, formats, round, ulp } from '../../src/formats/index.js';
import { runFa4, runVariant, scoredProblem, wavyProblem } from './variants-problems.js';

const mean = (values: readonly number[]): number =>
  values.reduce((a, b) => a + b, 0) / values.length;

/** Scores whose weights are numbers of fp32 and not of bf16. */
const uneven = (j: number): number => -((j * 37) % 128) / 32;

describe('uniform-scale-error', () => {
  it('doubles the output and takes ln 2 off the LSE where all keys are alike', () => {
    const problem = scoredProblem({
      queries: 3,
      keys: 256,
      query: (row: number) => row,
      value: (key, column) => Math.sin(key + column),
    });
    const [kernel, variant] = [runFa4(problem), runVariant('uniform-scale-error', problem)];
    kernel.out.forEach((x, i) => expect(variant.out[i]).toBe(2 * x));
    kernel.lse.forEach((lse, row) => expect(variant.lse[row]).toBeCloseTo(lse - Math.LN2, 5));
  });

  it('has the row sum of every other four columns', () => {
    const problem = scoredProblem({ queries: 1, keys: 128, key: uneven });
    let half = 0;
    for (let j = 0; j < 128; j++) if (j % 8 < 4) half += 2 ** uneven(j);
    expect(runVariant('uniform-scale-error', problem).lse[0]).toBeCloseTo(Math.log(half), 3);
  });
});

describe('reciprocal-before-last-block', () => {
  it('divides by what was summed before the first keys', () => {
    for (const blocks of [2, 3]) {
      const problem = scoredProblem({ queries: 1, keys: 128 * blocks });
      const variant = runVariant('reciprocal-before-last-block', problem);
      expect(variant.out[0]).toBe(blocks / (blocks - 1));
      expect(variant.bits.lse).toEqual(runFa4(problem).bits.lse);
    }
  });
});

describe('lse-base-2', () => {
  it('is the LSE over ln 2, and the output is the same', () => {
    const problem = wavyProblem([1, 1, 20, 60]);
    const [kernel, variant] = [runFa4(problem), runVariant('lse-base-2', problem)];
    expect(variant.bits.out).toEqual(kernel.bits.out);
    kernel.lse.forEach((lse, row) => expect(variant.lse[row] * Math.LN2).toBeCloseTo(lse, 5));
  });
});

describe('p-truncated', () => {
  it('shrinks the output of V = 1 by half an ulp of P on average, and leaves the LSE', () => {
    // Each query shifts the weights by another factor between 1 and 2.
    const problem = scoredProblem({
      queries: 40,
      keys: 128,
      query: (i) => 1 + i / 64,
      key: uneven,
    });
    const settings = { 'out.format': 'fp16' };
    const [kernel, variant] = [
      runFa4(problem, settings),
      runVariant('p-truncated', problem, settings),
    ];
    expect(variant.bits.lse).toEqual(kernel.bits.lse);
    const error = (out: Float64Array): number => mean([...out].map((x) => x - 1));
    expect(Math.abs(error(kernel.out))).toBeLessThan(2 ** -11);
    // An ulp of bf16 is between 2^-8 and 2^-7 of the number.
    expect(-error(variant.out)).toBeGreaterThan(2 ** -9);
    expect(-error(variant.out)).toBeLessThan(2 ** -8);
  });
});

describe('p-rounded-before-sum', () => {
  it('sums rounded weights in the block visited first, others as they are', () => {
    const problem = scoredProblem({ queries: 1, keys: 256, key: uneven });
    const settings = { 'exp2.frequency': '0' };
    const weights = Array.from({ length: 256 }, (_, j) => 2 ** uneven(j));
    const sum = weights.reduce((total, p, j) => total + (j < 128 ? p : round(formats.bf16, p)), 0);
    const exact = weights.reduce((a, b) => a + b, 0);
    const kernel = runFa4(problem, settings).lse[0];
    const variant = runVariant('p-rounded-before-sum', problem, settings).lse[0];
    expect(kernel).toBeCloseTo(Math.log(exact), 5);
    expect(variant).toBeCloseTo(Math.log(sum), 5);
    expect(Math.abs(Math.log(sum / exact))).toBeGreaterThan(5e-5);
  });

  it('is not seen where weights are numbers of the format', () => {
    const problem = scoredProblem({ queries: 1, keys: 200, key: (j) => -(j % 5) });
    expect(runVariant('p-rounded-before-sum', problem).bits).toEqual(runFa4(problem).bits);
  });
});

describe('biased-p-rounding', () => {
  const columns = 256;
  const heads = 24;

  /** In [0, 1), without a pattern. */
  function scattered(seed: number): number {
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed) + 0x6d2b79f5;
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /**
   * Mean error of outputs in ulp, for two keys of weight 1 and one of 2^-12 that pushes the sums of
   * their values off midpoints. `sign` is that of a value.
   */
  function bias(variant: string, sign: (seed: number) => number): number {
    const errors = Array.from({ length: heads }, (_, head) => {
      const problem = scoredProblem({
        queries: 1,
        keys: 3,
        key: (j: number) => (j < 2 ? 0 : -12),
        vDim: columns,
        value: (key, c) => {
          const seed = Math.imul((head * 3 + key) * columns + c + 1, 0x9e3779b1);
          return sign(seed) * (1 + scattered(seed));
        },
      });
      const v = decodeToFloat64(problem.v.data, formats.bf16);
      const { out } = runVariant(variant, problem);
      return Array.from(out, (x, c) => {
        const exact = (v[c] + v[columns + c] + v[2 * columns + c] * 2 ** -12) / (2 + 2 ** -12);
        return (x - exact) / ulp(formats.bf16, exact);
      });
    });
    return mean(errors.flat());
  }

  it('errs to one side where V has one sign, by a quarter of an ulp on average', () => {
    // A sum of two numbers of one binade is a midpoint half of the time, and always goes outwards.
    for (const sign of [1, -1]) {
      const outwards = sign * bias('biased-p-rounding', () => sign);
      expect(outwards).toBeGreaterThan(0.2);
      expect(outwards).toBeLessThan(0.3);
    }
  });

  it('is no bias where V has both signs, nor in the kernel', () => {
    const random = (seed: number): number => (scattered(seed + 1) < 0.5 ? -1 : 1);
    expect(Math.abs(bias('biased-p-rounding', random))).toBeLessThan(0.03);
    expect(Math.abs(bias('none', () => -1))).toBeLessThan(0.03);
  });
});
