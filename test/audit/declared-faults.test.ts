import { describe, expect, it } from 'vitest';
import { judgeOutputs, premisePresets, type KernelOutputs } from '../../src/audit/index.js';
import { SelfNormalised } from '../../src/audit/structure/declared/self-normalised.js';
import type { Problem } from '../../src/problem/index.js';
import { randomValues } from '../../properties/problems/values.js';
import { encodeProblem } from '../../properties/problems/plain-problem.js';
import { testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { decode, encode } from './damage.js';
import { runPlainKernel, toFormat } from './declared-kernel.js';
import {
  asEager,
  faultyKernels,
  normalProblem,
  runWithSinks,
  withSinks,
} from './premises-faults.js';

const inTurn = turns(import.meta.url);

const { premises } = premisePresets['eager'];
const judge = (problem: Problem, outputs: KernelOutputs) =>
  judgeOutputs(problem, outputs, { premises, diagnose: false }).verdict;

const faults = [
  'an output 0.5 % too small',
  'an output 0.5 % too large',
  'a dropped last key',
  '16 counted zero keys',
  'the sinks of another head',
] as const;
const sinks = [1, 2.5];
/** What O alone does not show of every problem: one key of many may weigh little where its value is far off. */
const byLse: readonly string[] = ['a dropped last key'];

/** A plain kernel with one row that errs by more than it may, and by less than eager's may. */
function smallFault(problem: Problem): KernelOutputs {
  const { out, lse } = runPlainKernel(problem, () => ({}));
  const values = decode(lse!);
  values[7] += 0.004;
  return { out, lse: encode(values, 'fp32', lse!.shape) };
}

describe('declared eager, 2 heads of 256 × 256 × 64', () => {
  const problemOf = (name: string) => {
    const problem = normalProblem(testSeed);
    return name.includes('sinks') ? withSinks(problem, sinks) : problem;
  };

  inTurn.each(faults)('%s fails, of a plain kernel and of an eager one', (name) => {
    const problem = problemOf(name);
    for (const changes of [undefined, asEager]) {
      const { out, lse } = faultyKernels[name](problem, changes);
      for (const one of byLse.includes(name) ? [lse] : [lse, null]) {
        const { pass, sentence } = judge(problem, { out, lse: one });
        expect(pass, sentence).toBe(false);
      }
    }
  });

  inTurn('a correct eager kernel passes, with sinks too', () => {
    const problem = problemOf('');
    expect(judge(problem, runPlainKernel(problem, asEager)).sentence).toMatch(/^PASS/);
    const sunk = problemOf('sinks');
    expect(judge(sunk, runWithSinks(sunk, sinks, asEager)).sentence).toMatch(/^PASS/);
  });
});

/** Errors of one head that a statistic is to find alone, by their size. */
const errors = {
  scale: {
    quantity: 'out',
    of: ({ out, lse }: KernelOutputs, size: number) => ({
      out: encode(
        decode(out).map((x) => x * (1 + size)),
        'bf16',
        out.shape,
      ),
      lse: lse!,
    }),
  },
  bias: {
    quantity: 'out',
    of: ({ out, lse }: KernelOutputs, size: number) => ({
      out: encode(
        decode(out).map((x) => x + 0.1 * size),
        'bf16',
        out.shape,
      ),
      lse: lse!,
    }),
  },
  'lse-mean': {
    quantity: 'lse',
    of: ({ out, lse }: KernelOutputs, size: number) => ({
      out,
      lse: encode(
        decode(lse!).map((x) => x + size),
        'fp32',
        lse!.shape,
      ),
    }),
  },
} as const;

describe('a statistic by the spread of its own rows', () => {
  inTurn.each(Object.entries(errors))(
    'finds alone what no other test of eager does: %s',
    (test, { of }) => {
      const problem = normalProblem(testSeed, { heads: 1 });
      const outputs = runPlainKernel(problem, (plain) => ({
        ...asEager(plain),
        outputFormat: 'fp64',
        output: (x) => x,
      }));
      const found = [2 ** -9, 2 ** -8, 2 ** -7].map((size) =>
        judge(problem, of(outputs, 1.5 * size)).findings.map((finding) => finding.test),
      );
      // The smallest that fails does so by this one.
      expect(found.find((tests) => tests.length > 0)).toEqual([test]);
    },
  );
});

describe('a declared premise', () => {
  inTurn('that a plain kernel does not need is said to be none of it, and it passes', () => {
    const problem = normalProblem(testSeed);
    const outputs = runPlainKernel(problem, () => ({}));
    for (const given of [outputs, { ...outputs, lse: null }]) {
      const { pass, sentence } = judge(problem, given);
      expect(pass).toBe(true);
      expect(sentence).toMatch(
        /Premise not borne out: the (output|LSE) errs by [\d.e-]+, where a kernel with scores in the input's format .* \(medians of \d+ rows\); it passes without as well\.$/,
      );
    }
  });

  inTurn('is no excuse for one wrong row of a kernel that errs as any other', () => {
    const problem = normalProblem(testSeed, { heads: 1 });
    const { pass, findings, sentence } = judge(problem, smallFault(problem));
    expect(
      findings.map(({ test }) => test),
      sentence,
    ).toEqual(['premise']);
    expect(pass).toBe(false);
    expect(sentence).toMatch(/^FAIL: premise not borne out: .*without it/);
    expect(judgeOutputs(problem, smallFault(problem), { diagnose: false }).verdict.pass).toBe(
      false,
    );
  });

  inTurn('that a kernel errs by is told of nothing', () => {
    const problem = normalProblem(testSeed);
    expect(judge(problem, runPlainKernel(problem, asEager)).sentence).not.toContain('remise');
  });
});

describe('scores of few distinct numbers, whose roundings all rows share', () => {
  /** Q and K of −1, 0 and 1: every score is one of some tens of numbers. */
  const grid = (seed: number, dim: number) => {
    const { integer, normal } = randomValues(seed);
    const [heads, queries, keys] = [2, 200, 200];
    const whole = (length: number) => Float64Array.from({ length }, () => integer(-1, 1));
    return encodeProblem({
      sizes: { batch: 1, kvHeads: heads, groupSize: 1, queries, keys, qkDim: dim, vDim: 16 },
      formats: { q: 'bf16', k: 'bf16', v: 'bf16' },
      values: {
        q: whole(heads * queries * dim),
        k: whole(heads * keys * dim),
        v: Float64Array.from({ length: heads * keys * 16 }, () => normal()),
      },
      scale: 1.3,
      causal: false,
      window: null,
      softcap: null,
    });
  };

  inTurn.each([8, 16])('raise no alarm, dimension %d', (dim) => {
    for (const seed of [testSeed, testSeed + 1]) {
      const problem = grid(seed, dim);
      const scaledOnly = (x: number) => toFormat('bf16')(x);
      for (const score of [
        scaledOnly,
        (x: number) => toFormat('bf16')(x * Math.LOG2E) / Math.LOG2E,
      ]) {
        const outputs = runPlainKernel(problem, () => ({ score, dividesFirst: true }));
        expect(judge(problem, outputs).findings).toEqual([]);
      }
    }
  });
});

describe('a self-normalised sum', () => {
  const row = (error: number) => ({
    row: {
      signed: Float64Array.of(error, 0, error, 0),
      written: new Float64Array(4),
      systematic: new Float64Array(4),
      known: new Float64Array(4),
    },
    variances: {
      weights: new Float64Array(4),
      outputs: new Float64Array(4),
      others: new Float64Array(4),
    },
    lse: null,
  });
  const none = new Float64Array(3);
  const collect = (values: readonly number[], unitOf: (i: number) => number) => {
    const sums = new SelfNormalised();
    values.forEach((x, i) => sums.add(row(x) as never, unitOf(i), none));
    return sums;
  };

  it('is as far from zero as its rows are many: √n of its own spread', () => {
    const sums = collect(new Array<number>(100).fill(0.5), (i) => i);
    expect(sums.sum(0)).toBe(50);
    expect(sums.tolerance(0, 7)).toBeCloseTo(7 * 0.5 * 10, 12);
  });

  it('counts rows that may err alike as one', () => {
    const sums = collect(new Array<number>(100).fill(0.5), () => 3);
    expect(sums.tolerance(0, 7)).toBeCloseTo(7 * 50, 12);
  });

  it('exceeds z of its spreads by chance as seldom as it says', () => {
    const { normal, uniform } = randomValues(testSeed);
    let beyond = 0;
    const trials = 2000;
    for (let trial = 0; trial < trials; trial++) {
      // Sizes of any distribution, with signs by chance.
      const values = Array.from({ length: 40 }, () => (uniform() < 0.5 ? -1 : 1) * normal() ** 4);
      const sums = collect(values, (i) => i);
      if (Math.abs(sums.sum(0)) > sums.tolerance(0, 2)) beyond++;
    }
    // 2 e^-2 = 0.27 at most.
    expect(beyond / trials).toBeLessThan(2 * Math.exp(-2));
  });

  it('is the same from parts', () => {
    const [first, second] = [collect([1, -2, 3], (i) => i), collect([4, -5], (i) => i + 2)];
    first.mergeState(second.state());
    const whole = collect([1, -2, 3, 4, -5], (i) => (i < 3 ? i : i - 1));
    expect(first.sum(0)).toBe(whole.sum(0));
    expect(first.tolerance(0, 5)).toBeCloseTo(whole.tolerance(0, 5), 12);
  });
});
