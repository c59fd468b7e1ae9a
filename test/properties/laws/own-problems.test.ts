import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  laws,
  resolvePromises,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
} from '../../../properties/index.js';
import { exactOfHotKeys } from '../../../properties/laws/exact/exact.js';
import { exactOfOctaves } from '../../../properties/laws/exact/exact-exp2.js';
import { testBias } from '../../../properties/laws/unbiased.js';
import { exactAttention } from '../../../properties/laws/within-bound.js';
import { decodeTensor, type FormatName } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { tensor } from '../../setup/problems.js';
import { changedKernel, promises, runOf, upTo } from './changed-kernel.js';
import { askedBy, definedKernel, rowOrigins, tryLaw, variedProblem } from './try-law.js';

/** Problems that a law makes for itself. */
function problemsOf(id: LawId, given: KernelPromises, numRuns: number): Problem[] {
  const { problems } = laws[id] as {
    readonly problems?: (of: ReturnType<typeof resolvePromises>) => fc.Arbitrary<Problem>;
  };
  if (problems === undefined) return expect.fail(`${id} has no problems of its own`);
  return fc.sample(problems(resolvePromises(given)), { numRuns, seed: 5 });
}

const small: KernelPromises = {
  causal: false,
  window: false,
  blockKeys: 8,
  sizes: {
    batch: { max: 2 },
    queries: { max: 4 },
    keys: { max: 40 },
    qkDim: { max: 6 },
    vDim: { max: 3 },
  },
};

describe('problems of which every result is exact', () => {
  const run = (problem: Problem, format: FormatName) => {
    const shape = problemShape(problem);
    const { out, lse } = definedAttention(problem);
    const outputs = {
      out: tensor(format, [shape.batch, shape.heads, shape.queries, shape.vDim], (i) => out[i]),
      lse: null,
    };
    return { configuration: null, problem, shape, outputs, out, lse };
  };

  it.each(['bf16', 'fp16', 'fp32', 'e4m3'] as const)(
    'have hot keys of score 0 and cold ones, in %s',
    (format) => {
      const hotCounts = new Set<number>();
      for (const problem of problemsOf('exact', { ...small, formats: [format] }, 12)) {
        const of = run(problem, format === 'e4m3' ? 'bf16' : format);
        const { expected, count } = exactOfHotKeys(of);
        expect(count).toBe(expected.length);
        expect(expected.every((x, i) => Math.abs(of.out[i] - x) <= 1e-12 * Math.abs(x))).toBe(true);
        const { qkDim, vDim, keys } = of.shape;
        const [q, k, v] = [problem.q, problem.k, problem.v].map((one) => decodeTensor(one));
        expect(q.every((x) => x > 0)).toBe(true);
        const hot = upTo(k.length / qkDim).filter((row) =>
          k.subarray(row * qkDim, (row + 1) * qkDim).every((x) => x === 0),
        );
        for (const row of upTo(k.length / qkDim)) {
          const values = v.subarray(row * vDim, (row + 1) * vDim);
          if (hot.includes(row))
            expect(values.every((x) => Number.isInteger(x) && x !== 0 && Math.abs(x) <= 256)).toBe(
              true,
            );
          else expect(values.every((x) => Math.abs(x) >= 16 && Math.abs(x) <= 32)).toBe(true);
        }
        const ofFirst = hot.filter((row) => row < keys).length;
        expect(Math.log2(ofFirst) % 1).toBe(0);
        hotCounts.add(ofFirst);
        expect(problem.scale >= 1 / 16).toBe(true);
      }
      expect(hotCounts.size).toBeGreaterThan(2);
    },
  );

  it.each(['bf16', 'fp16', 'fp32'] as const)('have weights of powers of two, in %s', (format) => {
    const weights = new Set<number>();
    for (const problem of problemsOf('exact-exp2', { ...small, formats: [format] }, 12)) {
      const of = run(problem, format);
      expect(problem.scale).toBe(Math.LN2);
      const { expected, count } = exactOfOctaves(of);
      expect(count).toBe(expected.length);
      expect(
        expected.every((x, i) => Math.abs(of.out[i] - x) <= 1e-12 * Math.max(1, Math.abs(x))),
      ).toBe(true);
      const { qkDim } = of.shape;
      const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
      expect(q.every((x, i) => i % qkDim !== 0 || x === 8)).toBe(true);
      k.forEach((x, i) => i % qkDim === 0 && weights.add(8 * x));
      expect(q.every((x, i) => i % qkDim !== 1 || (Number.isInteger(x) && Math.abs(x) <= 3))).toBe(
        true,
      );
    }
    expect([...weights].sort((a, b) => a - b)).toEqual([-2048, ...upTo(8).map((i) => i - 7)]);
  });
});

describe('a bias', () => {
  it('is looked for in many rows, of V of one sign, with weights that differ or come in pairs', () => {
    const drawn = problemsOf('unbiased', { formats: ['fp32'] }, 8).map((problem) => {
      const { batch, kvHeads, groupSize, queries, keys, qkDim, vDim } = problemShape(problem);
      expect([batch, kvHeads, groupSize]).toEqual([2, 2, 1]);
      for (const [size, least, most] of [
        [queries, 64, 96],
        [keys, 96, 160],
        [qkDim, 32, 48],
        [vDim, 16, 48],
      ] as const)
        expect(size >= least && size <= most).toBe(true);
      const v = decodeTensor(problem.v);
      expect(
        v.every((x) => Math.sign(x) === Math.sign(v[0]) && Math.abs(x) >= 1 && Math.abs(x) <= 2),
      ).toBe(true);
      const k = decodeTensor(problem.k);
      const row = (key: number) => k.subarray(key * qkDim, (key + 1) * qkDim).join();
      const arePairs = upTo(keys >> 1).every((pair) => row(2 * pair) === row(2 * pair + 1));
      expect([problem.causal, problem.window, problem.softcap, problem.scale]).toEqual([
        false,
        null,
        null,
        1 / Math.sqrt(qkDim),
      ]);
      // Of pairs each query is nearest to one, by some nats.
      const q = decodeTensor(problem.q);
      const scores = upTo(keys).map(
        (key) => upTo(qkDim).reduce((sum, t) => sum + q[t] * k[key * qkDim + t], 0) * problem.scale,
      );
      const [first, second, third] = [...scores].sort((a, b) => b - a);
      if (arePairs) expect([first - second < 1e-9, first - third > 3]).toEqual([true, true]);
      return arePairs;
    });
    expect(new Set(drawn)).toEqual(new Set([true, false]));
    const [few] = problemsOf(
      'unbiased',
      {
        formats: ['fp32'],
        sizes: { queries: { max: 8 }, keys: { max: 12 } },
        dims: [8],
        scales: ['odd'],
      },
      1,
    );
    expect(problemShape(few)).toMatchObject({ queries: 8, keys: 12, qkDim: 8, vDim: 8 });
    expect(few.scale).toBeGreaterThan(0);
  });

  const problem = {
    ...variedProblem({}, { batch: 1, heads: 2, kvHeads: 1, queries: 6, keys: 5, dim: 2, vDim: 3 }),
    v: tensor('fp32', [1, 1, 5, 3], (i) => 1 + i / 16),
  };
  const reference = exactAttention(problem);

  /** The test of results that are too large by a share. */
  const biased = (share: number, isDividedLast = false) => {
    const run = runOf(problem);
    return testBias(
      { ...run, out: run.out.map((x) => x * (1 + share)) },
      reference,
      isDividedLast,
      promises,
    );
  };

  it('is the mean of the rows, with a limit of chance over groups that share their largest key', () => {
    const { mean, rows, groups, limit } = biased(0.25);
    expect(Math.abs(mean - 0.25)).toBeLessThan(1e-9);
    expect(rows).toBe(12);
    const { qkDim } = problemShape(problem);
    const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
    const leading = upTo(12).map((row) => {
      const scores = upTo(5).map((key) =>
        upTo(qkDim).reduce((sum, t) => sum + q[row * qkDim + t] * k[key * qkDim + t], 0),
      );
      return scores.indexOf(Math.max(...scores));
    });
    const counts = [...new Set(leading)].map((key) => leading.filter((one) => one === key).length);
    expect(groups).toBe(counts.length);
    // Chance: √(2 ln(2e9)) deviations of groups that are off by a quarter a row.
    const deviations =
      Math.sqrt(2 * Math.log(2e9)) *
      Math.sqrt(counts.reduce((sum, count) => sum + (count / 4) ** 2, 0));
    expect(Math.abs(limit / (deviations / 12) - 1)).toBeLessThan(0.02);
    expect(biased(-0.25).mean).toBeCloseTo(-0.25, 9);
    // Without an error what is systematic is left, and chance of as much.
    const none = biased(0);
    expect(none.limit).toBeGreaterThan(0);
    expect(none.limit).toBeLessThan(1e-4);
    expect(biased(0, true).limit).toBeLessThanOrEqual(none.limit);
  });

  it('counts no row without an output, or of zeros', () => {
    const run = runOf(problem);
    const nan = { ...run, out: run.out.map((x, i) => (i === 4 ? NaN : x)) };
    expect(testBias(nan, reference, false, promises).rows).toBe(11);
    const zero = { ...problem, v: tensor('fp32', [1, 1, 5, 3], () => 0) };
    expect(testBias(runOf(zero), exactAttention(zero), false, promises)).toMatchObject({
      rows: 0,
      mean: 0,
      groups: 0,
    });
  });

  it('is told with its sign where it is more than chance', async () => {
    // Every query has a largest key of its own, on a circle.
    const onCircle = (radius: number) =>
      tensor(
        'fp32',
        [1, 1, 100, 2],
        (i) => radius * (i % 2 === 0 ? Math.cos : Math.sin)((Math.PI * (i >> 1)) / 50),
      );
    const frame = { batch: 1, heads: 1, kvHeads: 1, queries: 100, keys: 100, dim: 2, vDim: 2 };
    const v = tensor('fp32', [1, 1, 100, 2], (i) => 1 + (i % 16) / 16);
    const many = { ...variedProblem({}, frame), q: onCircle(40), k: onCircle(1), v };
    const tried = (share: number) =>
      tryLaw(
        'unbiased',
        { problem: many, choice: 0 },
        {
          kernel: changedKernel(
            ({ out }) => void out.forEach((x, i) => (out[i] = x * (1 + share))),
          ),
        },
      );
    const [large, smaller, none] = await Promise.all([0.01, -0.01, 0].map(tried));
    expect(large.status === 'violated' && / 1 % too large on average/.test(large.statement)).toBe(
      true,
    );
    expect(
      smaller.status === 'violated' && / 1 % too small on average/.test(smaller.statement),
    ).toBe(true);
    expect(none.status).toBe('held');
  });
});

describe('a problem of another configuration in between', () => {
  const law = 'configurations-by-turns';
  const sizes = { batch: 1, heads: 4, kvHeads: 2, queries: 3, keys: 4, dim: 2, vDim: 3 } as const;
  const plain = variedProblem({ scale: 0.5 }, sizes);
  const other = async (choice: number, given: KernelPromises = {}, problem = plain) => {
    const { result, problems } = await askedBy(law, { problem, choice }, { promises: given });
    if (result.status === 'inapplicable') return null;
    expect(result.status).toBe('held');
    expect(problems).toHaveLength(3);
    const [first, between, again] = problems;
    expect([first, again]).toEqual([problem, problem]);
    expect(first.q.data).not.toBe(again.q.data);
    return between;
  };

  it('has the other causality, dimensions, heads, scale and window, sizes, or no features', async () => {
    expect((await other(0))!.causal).toBe(true);
    expect((await other(0, {}, { ...plain, causal: true }))!.causal).toBe(false);
    expect(await other(0, { causal: false })).toBeNull();
    const wide = (await other(1))!;
    expect(problemShape(wide)).toMatchObject({ qkDim: 4, vDim: 6 });
    decodeTensor(wide.v).forEach((x, i) =>
      expect(x).toBe(decodeTensor(plain.v)[Math.floor(i / 6) * 3 + (i % 3)]),
    );
    decodeTensor(wide.q).forEach((x, i) =>
      expect(x).toBe(decodeTensor(plain.q)[Math.floor(i / 4) * 2 + (i % 2)]),
    );
    const listed = variedProblem({}, { ...sizes, vDim: 2 });
    expect(problemShape((await other(1, { dims: [2, 5] }, listed))!)).toMatchObject({
      qkDim: 5,
      vDim: 5,
    });
    expect(await other(1, { dims: [2] }, listed)).toBeNull();
    const heads = (await other(2))!;
    expect(problemShape(heads)).toMatchObject({ heads: 8, kvHeads: 2, groupSize: 4 });
    expect(
      rowOrigins(heads.q, plain.q)
        .filter((_, i) => i % 3 === 0)
        .map((row) => row / 3),
    ).toEqual([0, 1, 0, 1, 2, 3, 2, 3]);
    const scaled = (await other(3))!;
    expect([scaled.scale, scaled.window]).toEqual([1, { left: 3, right: 0 }]);
    const unscaled = (await other(3, { scales: ['default'], window: false }))!;
    expect([unscaled.scale, unscaled.window]).toEqual([0.5, null]);
    const decoded = (await other(4))!;
    expect(problemShape(decoded)).toMatchObject({ queries: 1, keys: 5 });
    expect(rowOrigins(decoded.k, plain.k).slice(0, 5)).toEqual([0, 1, 2, 3, 0]);
    expect(problemShape((await other(4, { multiples: { keys: 4 } }))!).keys).toBe(8);
    expect(await other(5)).toBeNull();
    const biased = { ...plain, prefix: 2 };
    expect((await other(5, { features: ['prefix'] }, biased))!.prefix).toBeUndefined();
    for (const choice of [2, 4])
      expect((await other(choice, { features: ['prefix'] }, biased))!.prefix).toBeUndefined();
    for (const choice of [0, 1, 3])
      expect((await other(choice, { features: ['prefix'] }, biased))!.prefix).toBe(2);
  });

  it('changes nothing before and after, and is right itself', async () => {
    const trial = (kernel: AttentionKernel) =>
      tryLaw(law, { problem: plain, choice: 0 }, { kernel });
    const later = await trial(changedKernel(({ out }, run) => run === 2 && (out[7] += 2 ** -40)));
    expect(later.status === 'violated' && later.statement).toMatch(
      /^O at head 0, query 2, column 1 is .* at first but .* again, after a problem of the other causality$/,
    );
    const between = await trial(changedKernel(({ out }, run) => run === 1 && (out[7] += 1)));
    expect(between.status === 'violated' && between.statement).toMatch(
      /^of a problem of the other causality, in between, /,
    );
    let runs = 0;
    const declined = await trial((problem) => {
      if (runs++ === 1) throw new UnsupportedProblem('no causal mask');
      return definedKernel(problem);
    });
    expect(declined).toEqual({
      status: 'inapplicable',
      reason: 'the kernel declines the other configuration',
    });
  });
});
