import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertMatchesAttention,
  attentionProblem,
  describeProblem,
  type AttentionOutputs,
  type ProblemConstraints,
} from '../../../properties/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';
import { exactKernel } from '../exact-kernel.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** What a property that fails on some problems shrinks to. */
function counterexample(
  constraints: ProblemConstraints,
  passes: (problem: Problem) => boolean | void,
) {
  const details = fc.check(fc.property(attentionProblem(constraints), passes), {
    seed: 7,
    numRuns: 300,
  });
  expect(details.failed).toBe(true);
  return { details, problem: details.counterexample![0] };
}

/** Attention without special values and of a size that is quick to audit. */
const quick: ProblemConstraints = {
  queries: { max: 12 },
  keys: { max: 12 },
  qkDim: { max: 8 },
  vDim: { max: 8 },
  formats: ['bf16', 'fp16', 'fp32'],
  regimes: ['normal', 'large', 'constant-keys', 'outlier-channel'],
};

/** Problems of a regime that any problem could be of. */
const plain: ProblemConstraints = { regimes: ['normal'] };

/** A kernel that solves another problem than the one it is given. */
function mistaken(mistake: (problem: Problem) => Problem): (problem: Problem) => AttentionOutputs {
  return (problem) => exactKernel(mistake(problem));
}

function shrunk(kernel: (problem: Problem) => AttentionOutputs, constraints = quick) {
  const { problem } = counterexample(constraints, (given) =>
    assertMatchesAttention(given, kernel(given)),
  );
  return { problem, shape: problemShape(problem) };
}

const noMasks = { causal: false, window: null, softcap: null };
const single: Partial<ProblemShape> = { batch: 1, heads: 1, kvHeads: 1, qkDim: 1, vDim: 1 };

describe('a wrong kernel shrinks to a tiny problem', () => {
  it('that always fails: one zero of everything, no masks, scale 1/√d', () => {
    const { problem, details } = counterexample(plain, () => false);
    expect(problemShape(problem)).toMatchObject({ ...single, queries: 1, keys: 1 });
    expect(problem).toMatchObject({ ...noMasks, scale: 1 });
    for (const tensor of [problem.q, problem.k, problem.v])
      expect(describeProblem(problem)).toContain(`${tensor.format} [1, 1, 1, 1] = [0]`);
    expect(details.numShrinks).toBeLessThan(30);
  });

  inTurn('that forgets the causal mask: one query row that must not see one key', () => {
    const { problem, shape } = shrunk(mistaken((given) => ({ ...given, causal: false })));
    expect(shape).toMatchObject(single);
    expect(problem).toMatchObject({ ...noMasks, causal: true });
    expect(shape.queries + shape.keys).toBeLessThanOrEqual(4);
  });

  inTurn('that takes the window to be one key wider: as few keys as show it', () => {
    const { problem, shape } = shrunk(
      mistaken((given) => {
        const left = given.window?.left ?? -1;
        return left < 0 ? given : { ...given, window: { ...given.window!, left: left + 1 } };
      }),
      { ...quick, window: true },
    );
    expect(shape).toMatchObject({ ...single, queries: 1, keys: 2 });
    expect(problem.window).toEqual({ left: 0, right: -1 });
  });

  inTurn('that forgets the softcap: one query, one or two keys', () => {
    const { problem, shape } = shrunk(mistaken((given) => ({ ...given, softcap: null })));
    expect(shape).toMatchObject({ ...single, queries: 1 });
    expect(shape.keys).toBeLessThanOrEqual(2);
    expect(problem).toMatchObject({ ...noMasks, softcap: 1 });
  });

  inTurn('that gives every query head the first kv head: two of them', () => {
    const { problem, shape } = shrunk(
      mistaken((given) => {
        const { kvHeads, keys, qkDim, vDim, batch } = problemShape(given);
        const firstOnly = (tensor: Problem['k'], dim: number) => {
          const data = tensor.data.slice();
          const head = keys * dim;
          for (let b = 0; b < batch; b++)
            for (let h = 1; h < kvHeads; h++)
              data.copyWithin(
                (b * kvHeads + h) * head,
                b * kvHeads * head,
                (b * kvHeads + 1) * head,
              );
          return { ...tensor, data };
        };
        return { ...given, k: firstOnly(given.k, qkDim), v: firstOnly(given.v, vDim) };
      }),
    );
    expect(shape).toMatchObject({ ...single, heads: 2, kvHeads: 2, queries: 1, keys: 1 });
    expect(problem).toMatchObject(noMasks);
  });

  it('that goes wrong from 65 keys on: exactly 65', () => {
    const { problem } = counterexample(plain, (given) => problemShape(given).keys < 65);
    expect(problemShape(problem)).toMatchObject({ ...single, queries: 1, keys: 65 });
    expect(problem).toMatchObject(noMasks);
  });

  it('that goes wrong on one value: that value alone, and the least one', () => {
    const { problem } = counterexample({ ...plain, formats: ['fp32'] }, (given) =>
      (given.v.data as Float32Array).every((x) => x < 1.5),
    );
    expect(problem.v.data).toEqual(Float32Array.of(2));
    expect(problem.q.data).toEqual(Float32Array.of(0));
  });

  it('that goes wrong on a NaN: nothing but the NaN', () => {
    const constraints: ProblemConstraints = {
      ...plain,
      formats: ['fp32'],
      specialValues: ['nan'],
    };
    const { problem } = counterexample(constraints, (given) =>
      (given.k.data as Float32Array).every((x) => !Number.isNaN(x)),
    );
    expect(problem.k.data).toEqual(Float32Array.of(NaN));
    expect(problem.v.data).toEqual(Float32Array.of(0));
  });
});

describe('the search for simpler problems', () => {
  it('comes to an end whatever it accepts', () => {
    // Every chain of accepted steps is finite: accept pseudo-randomly.
    for (let salt = 0; salt < 5; salt++) {
      let step = salt;
      const arbitrary = attentionProblem({ specialValues: ['nan', 'infinity'] });
      const details = fc.check(
        fc.property(arbitrary, () => (step++ * 2654435761) % 4294967296 > 2 ** 31),
        { seed: salt, numRuns: 20 },
      );
      expect(details.numShrinks).toBeLessThan(3000);
    }
  });

  it('takes problems that come as examples', () => {
    const problem = fc.sample(attentionProblem(), { seed: 3, numRuns: 1 })[0];
    const details = fc.check(
      fc.property(attentionProblem(), (_given: Problem) => false),
      { seed: 3, numRuns: 1, examples: [[problem]] },
    );
    expect(problemShape(details.counterexample![0])).toMatchObject({ ...single, keys: 1 });
    const arbitrary = attentionProblem();
    expect(arbitrary.canShrinkWithoutContext(problem)).toBe(true);
    for (const other of [null, 7, {}, { q: 1, k: 2, v: 3 }])
      expect(arbitrary.canShrinkWithoutContext(other)).toBe(false);
  });

  it('shows the counterexample in words', () => {
    const details = fc.check(
      fc.property(attentionProblem({ ...plain, formats: ['bf16'] }), ({ causal }) => !causal),
      { seed: 1 },
    );
    const report = fc.defaultReportMessage(details)!;
    expect(report).toContain(
      'attention problem, scale 1, causal\nq: bf16 [1, 1, 1, 1] = [0]\nk: bf16 [1, 1, 1, 1] = [0]',
    );
  });
});

describe('describing a problem', () => {
  it('gives settings, shapes and values, cut at 64', () => {
    const vector = (length: number, value: (i: number) => number) => ({
      format: 'fp32' as const,
      shape: [1, length, 1],
      data: Float32Array.from({ length }, (_, i) => value(i)),
    });
    const text = describeProblem({
      q: vector(1, () => -0),
      k: vector(100, (i) => i),
      v: vector(100, () => Infinity),
      scale: 0.5,
      causal: true,
      window: { left: 3, right: -1 },
      softcap: 30,
    });
    expect(text.split('\n')[0]).toBe(
      'attention problem, scale 0.5, causal, window 3,-1, softcap 30',
    );
    expect(text).toContain('q: fp32 [1, 1, 1, 1] = [-0]');
    expect(text).toContain('62, 63, … 36 more]');
  });
});
