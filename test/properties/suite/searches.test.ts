import { describe, expect, it } from 'vitest';
import {
  KernelFault,
  resolvePromises,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
} from '../../../properties/index.js';
import { KernelAbsent } from '../../../properties/laws/kernel-under-test.js';
import { findCounterexample } from '../../../properties/suite/find-counterexample.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { tensor } from '../../setup/problems.js';

/** O of one number everywhere, and an LSE of zeros. */
function constant(problem: Problem, x: number) {
  const { batch, heads, queries, vDim } = problemShape(problem);
  const shape = [batch, heads, queries];
  return { out: tensor('fp32', [...shape, vDim], () => x), lse: tensor('fp32', shape, () => 0) };
}

/** A kernel, and the problems that it was asked. */
function asked(kernel: (problem: Problem, call: number) => ReturnType<AttentionKernel>) {
  const problems: Problem[] = [];
  return {
    problems,
    kernel: ((problem) => kernel(problem, problems.push(problem))) satisfies AttentionKernel,
  };
}

const sizes = { batch: { max: 1 }, keys: { max: 9 }, queries: { max: 3 } } as const;

/** The search for a case of a law, of problems of normal numbers. */
function search(
  kernel: AttentionKernel,
  {
    law = 'determinism',
    seed = 5,
    seconds = 5,
    ...promises
  }: KernelPromises & { law?: LawId; seed?: number; seconds?: number } = {},
) {
  const resolved = resolvePromises({ formats: ['fp32'], sizes, ...promises });
  const tiling = { blockKeys: 4, threshold: 8 };
  return findCounterexample(
    { law, seed, regime: 'normal', specials: [], tiling, production: null },
    kernel,
    resolved,
    seconds,
  );
}

describe('a search', () => {
  it('that finds nothing has the runs of its one case', async () => {
    for (const seed of [1, 2, 3]) {
      const { kernel, problems } = asked((problem) => constant(problem, 1));
      const found = await search(kernel, { seed });
      expect(found.status).toBe('held');
      if (found.status !== 'held') return;
      expect(found.runs.length).toBe(problems.length);
      expect([2, 3]).toContain(problems.length);
      expect(found.runs.map(({ shape }) => shape)).toEqual(
        problems.map((problem) => problemShape(problem)),
      );
    }
  });

  it('gives up after twenty problems that cannot be tried, and says what was declined', async () => {
    const { kernel, problems } = asked(() => {
      throw new UnsupportedProblem('it takes none');
    });
    expect(await search(kernel)).toEqual({ status: 'unsupported', reason: 'it takes none' });
    expect(new Set(problems.map(({ q }) => q.data.join())).size).toBe(problems.length);
    expect([20, 21]).toContain(problems.length);
    const nothing = asked((problem) => constant(problem, 1));
    const alone = { law: 'grouped-heads', sizes: { ...sizes, groupSize: { max: 1 } } } as const;
    expect(await search(nothing.kernel, alone)).toEqual({
      status: 'unsupported',
      reason: 'the problem has no grouped heads',
    });
    expect(await search(nothing.kernel, { scoreLimit: { raw: 1e-30, scaled: 1e-30 } })).toEqual({
      status: 'unsupported',
      reason: 'scores beyond the promised limit',
    });
    expect(nothing.problems).toEqual([]);
    // Some are declined, of the others the law says nothing.
    const both = { law: 'grouped-heads', sizes: { ...sizes, groupSize: { max: 2 } } } as const;
    for (const seed of [1, 2, 3, 4])
      expect(await search(kernel, { ...both, seed })).toEqual({
        status: 'unsupported',
        reason: 'it takes none',
      });
  });

  it('goes on where some problems cannot be tried', async () => {
    const { kernel, problems } = asked((problem, call) => {
      if (call < 7) throw new UnsupportedProblem('not yet');
      return constant(problem, 1);
    });
    const found = await search(kernel);
    expect(found.status).toBe('held');
    expect(found.status === 'held' && found.runs.length).toBe(problems.length - 6);
  });

  /** Gives other numbers each time, on problems of three keys and more. */
  const restless = () =>
    asked((problem, call) => constant(problem, problemShape(problem).keys < 3 ? 0 : call));

  it('simplifies what it finds, for as long as it may', async () => {
    const found = await search(restless().kernel, {
      sizes: { ...sizes, keys: { min: 3, max: 9 } },
    });
    if (found.status !== 'violated') return expect.fail();
    const { counterexample, drawn, runs } = found;
    const { lawCase, kind, cause, hint, shrinks, statement } = counterexample;
    expect(shrinks).toBeGreaterThan(0);
    const { heads, queries, keys, qkDim, vDim } = problemShape(lawCase.problem);
    expect([heads, queries, keys, qkDim, vDim]).toEqual([1, 1, 3, 1, 1]);
    expect(lawCase.choice).toBe(0);
    expect(counterexample.runs.map(({ problem }) => problemShape(problem).keys)).toEqual([3, 3]);
    expect(statement).toMatch(/^O at head 0, query 0, column 0 is \d+ at first but \d+ again$/);
    expect([cause, hint, kind.id, kind.title]).toEqual([null, null, 'law determinism', statement]);
    // The runs of the case as it was drawn.
    expect(runs[0].out[0]).toBe(1);
    expect(runs[0].shape).toEqual(problemShape(drawn.problem));
    expect(drawn.problem).not.toBe(lawCase.problem);

    const hasty = await search(restless().kernel, {
      seconds: 0,
      sizes: { ...sizes, keys: { min: 3, max: 9 } },
    });
    if (hasty.status !== 'violated') return expect.fail();
    expect(hasty.counterexample.shrinks).toBe(0);
    expect(hasty.counterexample.lawCase).toBe(hasty.drawn);
    expect(problemShape(hasty.drawn.problem)).toEqual(problemShape(drawn.problem));
  });

  it('does not simplify what is slow, nor takes what is slow for simpler', async () => {
    const fault = new KernelFault('it gave no answer in 9 s', { isSlow: true });
    const slow = asked(() => {
      throw fault;
    });
    const found = await search(slow.kernel);
    if (found.status !== 'violated') return expect.fail();
    expect(slow.problems).toHaveLength(1);
    expect(found.counterexample).toMatchObject({
      statement: fault.message,
      cause: null,
      hint: null,
      shrinks: 0,
      kind: { id: 'fault it gave no answer in # s', title: fault.message },
    });
    expect(found.runs).toEqual([]);
    const large = (problem: Problem) => problemShape(problem).keys >= 5;
    const later = asked((problem, call) => {
      if (!large(problem)) throw fault;
      return constant(problem, call);
    });
    const wide = { ...sizes, keys: { min: 1, max: 9 } };
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const result = await search(later.kernel, { sizes: wide, seed });
      if (result.status !== 'violated') return expect.fail();
      const { statement, lawCase } = result.counterexample;
      if (large(result.drawn.problem)) {
        expect(problemShape(lawCase.problem).keys).toBeGreaterThanOrEqual(5);
        expect(statement).toContain(' at first but ');
      } else expect(statement).toBe(fault.message);
    }
  });

  it('says where the same problem passes again', async () => {
    const { kernel } = asked((problem, call) => constant(problem, Math.min(call, 4)));
    const found = await search(kernel, { seconds: 0 });
    if (found.status !== 'violated') return expect.fail();
    const { statement, kind, runs, shrinks } = found.counterexample;
    const again =
      'the same problem passed when it was tried again: the kernel is not deterministic';
    expect(statement.endsWith(`; ${again}`)).toBe(true);
    expect(statement).toContain(' at first but ');
    expect(kind).toEqual({ id: 'not-deterministic', title: again, equivalents: [] });
    expect([runs, shrinks]).toEqual([[], 0]);
    expect(found.runs.length).toBeGreaterThan(1);
  });

  it('throws what is no doing of the kernel', async () => {
    const { kernel } = asked(() => {
      throw new KernelAbsent('there is no kernel');
    });
    await expect(search(kernel)).rejects.toThrow('there is no kernel');
  });
});
