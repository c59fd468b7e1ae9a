import { describe, expect, it } from 'vitest';
import { scoreRanges } from '../../../properties/laws/score-range.js';
import { admittedArithmetic, storingError } from '../../../properties/laws/within-bound.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { tensor } from '../../setup/problems.js';
import { tryLaw, variedProblem } from './try-law.js';
import {
  upTo,
  sizes,
  problem,
  changedKernel,
  runOf,
  promises,
  expectLimit,
} from './changed-kernel.js';

describe('the LSE of a row', () => {
  const run = runOf(problem);
  const ranges = scoreRanges(run, promises);

  it('has a range of its largest score and ln n more, by definition', () => {
    const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
    ranges.forEach((range, row) => {
      const scores = upTo(5).map(
        (key) => (q[2 * row] * k[2 * key] + q[2 * row + 1] * k[2 * key + 1]) * problem.scale,
      );
      expect(range!.keys).toBe(5);
      expect(Math.abs(range!.largest - Math.max(...scores))).toBeLessThan(1e-14);
      expect(range!.lseError).toBeGreaterThan(0);
    });
    const causal = variedProblem({ causal: true }, { ...sizes, queries: 5, keys: 4 });
    const counts = scoreRanges(runOf(causal), promises).map((range) => range?.keys ?? null);
    expect(counts).toEqual([null, 1, 2, 3, 4, null, 1, 2, 3, 4]);
    const special = { ...problem, k: tensor('fp32', [1, 1, 5, 2], (i) => (i === 3 ? NaN : 1)) };
    expect(scoreRanges(runOf(special), promises)).toEqual(upTo(4).map(() => null));
    const capped = scoreRanges(runOf(variedProblem({ softcap: 0.01 }, sizes)), promises);
    for (const range of capped) expect(Math.abs(range!.largest)).toBeLessThanOrEqual(0.01);
  });

  it('errs by no more than the sum of its parts, and by no less than half of it', () => {
    const { scores, exponent, exponential, finish, rowSumAddition } = admittedArithmetic(
      run,
      promises,
    );
    if (scores.kind !== 'any-order') expect.fail();
    const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
    const norm = (values: Float64Array, row: number) =>
      Math.hypot(values[2 * row], values[2 * row + 1]);
    const longest = Math.max(...upTo(5).map((key) => norm(k, key)));
    ranges.forEach((range, row) => {
      const size = problem.scale * norm(q, row) * longest;
      const ofScores = (2 * scores.perProduct + exponent.ofScore + 2 * exponent.ofDistance) * size;
      const ofSum = exponential.hardware + 7 * rowSumAddition;
      const lse = Math.abs(range!.largest) + Math.log(5) + ofScores;
      const least = ofScores + ofSum + finish.logarithm + finish.elementwise * (2 * size + 5 * lse);
      expect(range!.lseError / least).toBeGreaterThan(1);
      expect(range!.lseError / least).toBeLessThan(1.1);
    });
  });

  it('is in its range, to its limits', async () => {
    const row = 3;
    const { largest, lseError, keys } = ranges[row]!;
    const [below, above] = [largest - run.lse[row], largest + Math.log(keys) - run.lse[row]];
    const low = storingError('fp64', largest, lseError);
    await expectLimit('lse-monotone', 0, 1, ({ lse }, factor) => {
      // Just above and below: the factor of the error alone.
      lse[row] += below - factor * (lseError + low);
    });
    await expectLimit('lse-monotone', 0, 1, ({ lse }, factor) => {
      lse[row] += above + factor * (lseError + low);
    });
  });

  it('does not fall with more keys, but for both errors', async () => {
    // The first four of five keys.
    const choice = 5;
    const row = 1;
    let first = 0;
    await tryLaw(
      'lse-monotone',
      { problem, choice },
      {
        kernel: changedKernel(({ lse }, at) => {
          if (at === 1) first = lse[row];
        }),
      },
    );
    const gap = run.lse[row] - first;
    expect(gap).toBeGreaterThan(0);
    // Without the last key the range's own limit is farther off.
    const errors = ranges[row]!.lseError;
    const status = async (excess: number) =>
      (
        await tryLaw(
          'lse-monotone',
          { problem, choice },
          {
            kernel: changedKernel(({ lse }, at) => {
              if (at === 1) lse[row] += gap + excess;
            }),
          },
        )
      ).status;
    expect([
      await status(0),
      await status(errors),
      await status(2.2 * errors),
      await status(4 * errors),
    ]).toEqual(['held', 'held', 'violated', 'violated']);
  });
});
