import { describe, expect, it } from 'vitest';
import {
  admittedArithmetic,
  exactAttention,
  runBounds,
} from '../../../properties/laws/within-bound.js';
import { decodeTensor, formats } from '../../../src/formats/index.js';
import { type Problem } from '../../../src/problem/index.js';
import { tensor } from '../../setup/problems.js';
import { tryLaw, variedProblem } from './try-law.js';
import {
  upTo,
  sizes,
  problem,
  type Changed,
  changedKernel,
  runOf,
  promises,
  expectLimit,
} from './changed-kernel.js';

describe('an element of O', () => {
  it('lies within the range of its column, but for rounding', async () => {
    const { perProduct } = (() => {
      const { values } = admittedArithmetic(runOf(problem), promises);
      return values.kind === 'any-order' ? values : expect.fail();
    })();
    const v = decodeTensor(problem.v);
    const column = upTo(5).map((key) => v[2 * key]);
    const [low, high] = [Math.min(...column), Math.max(...column)];
    const largest = Math.max(Math.abs(low), Math.abs(high));
    const { weightFormat, finish, partials } = admittedArithmetic(runOf(problem), promises);
    const unit = 2 ** -formats[weightFormat].precision;
    // The rounding of a weight, 2·7 additions, the division, and partial results.
    const slack = largest * (unit + 14 * perProduct + finish.normalise + partials);
    const status = async (x: number) =>
      (
        await tryLaw(
          'convexity',
          { problem, choice: 0 },
          { kernel: changedKernel(({ out }) => (out[2] = x)) },
        )
      ).status;
    expect([await status(high), await status(low)]).toEqual(['held', 'held']);
    expect([await status(high + 0.95 * slack), await status(low - 0.95 * slack)]).toEqual([
      'held',
      'held',
    ]);
    expect([await status(high + 1.1 * slack), await status(low - 1.1 * slack)]).toEqual([
      'violated',
      'violated',
    ]);
    expect(await status(NaN)).toBe('violated');
  });

  it('and of its keys alone; a sink is a key of value 0; nothing is known beside special values', async () => {
    const of = async (posed: Problem, x: number, at = 0) =>
      (
        await tryLaw(
          'convexity',
          { problem: posed, choice: 0 },
          { kernel: changedKernel(({ out }) => (out[at] = x)), promises: { features: ['sink'] } },
        )
      ).status;
    const v = tensor('fp32', [1, 1, 5, 2], (i) => 1 + Math.floor(i / 2));
    const causal = { ...variedProblem({ causal: true }, sizes), v };
    expect([
      await of(causal, 3.9),
      await of(causal, 4.1),
      await of(causal, 4.9, 2),
      await of(causal, 0.9),
    ]).toEqual(['held', 'violated', 'held', 'violated']);
    const sink = { logits: tensor('fp32', [2], () => 0), inLse: true };
    expect([await of({ ...causal, sink }, 0.1), await of({ ...causal, sink }, -0.1)]).toEqual([
      'held',
      'violated',
    ]);
    const special = tensor('fp32', [1, 1, 5, 2], (i) => (i === 8 ? Infinity : i === 7 ? NaN : 1));
    const open = { ...causal, v: special };
    expect([await of(open, 99), await of(open, 99, 2), await of(open, 99, 3)]).toEqual([
      'violated',
      'held',
      'held',
    ]);
  });

  it('is 1 with V = 1, the same in all columns, and leaves the LSE', async () => {
    const trial = async (
      change: (of: Changed, run: number) => void,
      strength: 'bits' | 'bound' = 'bits',
    ) =>
      tryLaw(
        'weights-sum-to-one',
        { problem, choice: 0 },
        { strength, kernel: changedKernel(change) },
      );
    expect((await trial(() => undefined)).status).toBe('held');
    const uneven = await trial(({ out }, run) => run === 0 && (out[5] += 2 ** -40));
    expect(uneven.status === 'violated' && uneven.statement).toContain(
      'O at head 1, query 0, column 1 is ',
    );
    expect((await trial(({ out }, run) => run === 0 && (out[5] += 2 ** -40), 'bound')).status).toBe(
      'held',
    );
    const other = await trial(({ lse }, run) => run === 1 && (lse[2] += 2 ** -40));
    expect(other.status === 'violated' && other.statement).toContain(
      'the LSE at head 1, query 0 is ',
    );
    expect((await trial(({ out }) => (out[0] = 1.5), 'bound')).status).toBe('violated');
  });
});

describe('parts of the keys', () => {
  it('make the whole, but for the bounds of all', async () => {
    const choice = 8;
    const parts: Problem[] = [];
    await tryLaw(
      'key-splitting',
      { problem, choice },
      { kernel: changedKernel((_, __, posed) => parts.push(posed)) },
    );
    const [whole, ...cut] = parts.map((posed) => {
      const reference = exactAttention(posed);
      return { run: runOf(posed), reference, bounds: runBounds(runOf(posed), reference, promises) };
    });
    const row = 2;
    const weight = cut.map(({ reference }) =>
      Math.exp(reference.quantities.lse.values[row] - whole.reference.quantities.lse.values[row]),
    );
    const combined = Math.log(
      cut.reduce((sum, { bounds }, i) => sum + weight[i] * Math.exp(bounds.lse[row]), 0),
    );
    await expectLimit(
      'key-splitting',
      choice,
      whole.bounds.lse[row] + combined,
      ({ lse }, by, at) => at === 0 && (lse[row] += by),
    );
    const at = 2 * row + 1;
    const exact = whole.reference.quantities.out.values[at];
    const ofOut = cut.reduce((sum, { bounds, reference }, i) => {
      const stretch = Math.exp(bounds.lse[row] + combined);
      return (
        sum +
        weight[i] *
          (stretch * bounds.out[at] +
            (stretch - 1) * Math.abs(reference.quantities.out.values[at] - exact))
      );
    }, whole.bounds.out[at]);
    await expectLimit(
      'key-splitting',
      choice,
      ofOut,
      ({ out }, by, run) => run === 0 && (out[at] -= by),
    );
  });
});
