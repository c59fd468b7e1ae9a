import { describe, expect, it } from 'vitest';
import {
  checkKernel,
  resolvePromises,
  runCase,
  type AttentionKernel,
  type KernelPromises,
} from '../../../properties/index.js';
import { encodeProblem } from '../../../properties/problems/plain-problem.js';
import { decodeToFloat64, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { exactKernel } from '../exact-kernel.js';

const inTurn = turns(import.meta.url);

const promises: KernelPromises = {
  formats: ['fp32'],
  sizes: { queries: { max: 6 }, keys: { max: 8 }, qkDim: { max: 4 }, vDim: { max: 4 } },
};
const scope = { laws: ['within-bound'], regimes: ['normal'], seed: 5, shrinkSeconds: 0 } as const;

/** The exact kernel with its output changed, given the problem. */
function spoilt(change: (out: Float64Array, problem: Problem) => void): AttentionKernel {
  return (problem) => {
    const { out, lse } = exactKernel(problem);
    const values = decodeToFloat64(out.data, formats[out.format]);
    change(values, problem);
    return { out: { ...out, data: encodeFromFloat64(formats[out.format], values) }, lse };
  };
}

describe('the verdict of a check', () => {
  it('is a pass of a right kernel and none of a broken one', async () => {
    const run = (kernel: AttentionKernel) => checkKernel(kernel, promises, { ...scope, runs: 4 });
    expect((await run(exactKernel)).pass).toBe(true);
    const broken = spoilt((out) => out.forEach((x, i) => (out[i] = x * 1.5)));
    expect((await run(broken)).pass).toBe(false);
  });

  const isSpecial = ({ data, format }: Tensor) =>
    decodeToFloat64(data, formats[format]).some((x) => !Number.isFinite(x));
  const specially = (change: (x: number) => number) =>
    spoilt((out, { q, k, v }) => {
      if ([q, k, v].some(isSpecial)) out.forEach((x, i) => (out[i] = change(x)));
    });
  const wrongly = [
    ['drops NaN', specially((x) => (Number.isNaN(x) ? 0 : x))],
    ['gives infinities the other sign', specially((x) => (Math.abs(x) === Infinity ? -x : x))],
    ['gives 0 for infinities', specially((x) => (Math.abs(x) === Infinity ? 0 : x))],
  ] as const;
  inTurn.each(sampled(wrongly, 1))(
    'fails a kernel that is wrong on infinities and NaN only: %s',
    async (_, kernel) => {
      const check = (specialValues: boolean, runs: number) =>
        checkKernel(kernel, { ...promises, specialValues }, { ...scope, runs, bail: true });
      expect((await check(true, 80)).pass).toBe(false);
      expect((await check(false, 16)).pass).toBe(true);
    },
  );

  it('fails a kernel that gives no LSE, where it promises one', async () => {
    const silent: AttentionKernel = (problem) => ({ out: exactKernel(problem).out, lse: null });
    const check = (lse: boolean) =>
      checkKernel(silent, { ...promises, lse }, { ...scope, runs: 2 });
    expect((await check(false)).pass).toBe(true);
    const { pass, laws } = await check(true);
    expect(pass).toBe(false);
    expect(laws[0].failure!.statement).toBe('the kernel gave no LSE, though it promises one');
  });
});

/** One head of queries and keys, all values 1 but V, which counts the keys from 1. */
function counting(queries: number, keys: number, more: Partial<Problem> = {}): Problem {
  const sizes = { batch: 1, kvHeads: 1, groupSize: 1, queries, keys, qkDim: 1, vDim: 1 };
  return {
    ...encodeProblem({
      sizes,
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
      formats: { q: 'fp32', k: 'fp32', v: 'fp32' },
      values: {
        q: new Float64Array(queries).fill(1),
        k: new Float64Array(keys).fill(1),
        v: Float64Array.from({ length: keys }, (_, key) => key + 1),
      },
    }),
    ...more,
  };
}

describe('laws', () => {
  const resolved = resolvePromises(promises);

  it('convexity: NaN is no number within a range', async () => {
    const lawCase = { problem: counting(3, 4), choice: 0 };
    for (const row of [0, 2]) {
      const kernel = spoilt((out) => out.fill(NaN, row, row + 1));
      const found = await runCase('convexity', lawCase, kernel, resolved, { diagnose: false });
      expect(found.status === 'violated' && found.statement).toMatch(
        new RegExp(`^O at head 0, query ${row}, column 0 is NaN, but its column of V lies between`),
      );
    }
  });

  it('masked-keys: what is hidden from every row must not come out of a row without keys', async () => {
    // Row 0 sees nothing, row i the key i − 1; what changes is hidden from the last row, not from others.
    const problem = counting(4, 3, { window: { left: 0, right: 0 } });
    const leaking = spoilt((out, { v }) => {
      out[0] = decodeToFloat64(v.data, formats.fp32)[0];
    });
    const lawCase = { problem, choice: 31 };
    const tried = (kernel: AttentionKernel) =>
      runCase('masked-keys', lawCase, kernel, resolved, { diagnose: false });
    const found = await tried(leaking);
    expect(found.status === 'violated' && found.statement).toMatch(/^O at head 0, query 0, column/);
    expect((await tried(exactKernel)).status).toBe('held');
  });
});
