import { describe, expect, it } from 'vitest';
import type { Prediction } from '../../../../src/audit/gradients/diagnosis/prediction.js';
import type { Replayed } from '../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { deltaFaults } from '../../../../src/audit/gradients/diagnosis/statistics/delta-faults.js';
import { statisticsFaults } from '../../../../src/audit/gradients/diagnosis/statistics/statistics-faults.js';
import type { Problem } from '../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped, gradientCase, roundedGradients } from '../gradient-case.js';
import { replayedOf } from './failed-case.js';

const dim = 8;

/** What is said of a dQ, beside a right dV, and the backward passes that it takes. */
function said(
  problem: Problem,
  count: number,
  change: (exact: Float64Array, row: number, column: number) => number,
  family: (of: Replayed) => Iterable<Prediction> = statisticsFaults,
) {
  const one = gradientCase(
    problem,
    tensor('bf16', [1, 1, count, 1], () => 1),
  );
  const { dq: exact, dv } = one.exact;
  const dq = exact.map((_, i) => change(exact, Math.floor(i / dim), i % dim));
  let passes = 0;
  const budget = {
    takes: (some: number) => {
      passes += some;
      return true;
    },
    isSpent: () => false,
  };
  const of = replayedOf(problem, roundedGradients(one, { dq, dv }, 'fp64'));
  const ids = of === null ? null : [...family({ ...of, budget })].map(({ id }) => id);
  return { ids, passes };
}

// All weights are 1/4, and dP is 4, −4, 8 and 0, so that D is 2 and a sum of terms of 4 on average.
const even = filledProblem(
  { queries: 3, keys: 4, dim, vDim: 1 },
  { q: () => 0, k: (i) => (i % dim === Math.floor(i / dim) ? 4 : 0), v: (i) => [4, -4, 8, 0][i] },
  { scale: 1 },
);

describe('the LSE and D of rows, as dQ tells them', () => {
  it.each([
    [1 / 4, []],
    [-1 / 4, []],
    [1 / 4 + 2 ** -20, ['statistics-wrong']],
    [-1 / 4 - 2 ** -20, ['statistics-wrong']],
  ])('have a wrong D beyond 1/16 of the sizes of its terms: %d', (off, wanted) => {
    const { ids } = said(even, 3, (exact, row, column) => {
      const own = exact[row * dim + column];
      return row === 1 && column < 4 ? own - off : own;
    });
    expect(ids).toEqual(wanted);
  });

  it('are looked for in no pass where a row that is off tells none, as one that sees one key', () => {
    const causal = filledProblem({ queries: 4, keys: 4, dim, vDim: 1 }, bellShaped(3), {
      causal: true,
    });
    const passesOf = (isOff: (row: number) => boolean) =>
      said(causal, 4, (exact, row, column) => {
        const own = exact[row * dim + column];
        return isOff(row) ? 40 * own + 0.3 * Math.cos(column) : own;
      }).passes;
    expect(passesOf((row) => row === 0)).toBe(0);
    expect(passesOf((row) => row === 3)).toBeGreaterThan(0);
    expect(passesOf((row) => row === 0 || row === 3)).toBe(0);
  });

  it('are not told by a dQ of zeros, which any LSE may have that is large', () => {
    const found = said(even, 3, (exact, row, column) =>
      row === 1 ? 0 : exact[row * dim + column],
    );
    expect(found).toEqual({ ids: [], passes: 0 });
  });
});

describe('a D of rows that is wrong by no rule', () => {
  /** Whether it is told where the D of some rows is off, by a share of the sizes of its terms. */
  const isTold = (share: number, rows: readonly number[]) =>
    said(
      even,
      3,
      (exact, row, column) => {
        const own = exact[row * dim + column];
        return rows.includes(row) && column < 4 ? own - 4 * share : own;
      },
      deltaFaults,
    ).ids?.includes('delta-wrong');

  it.each([1, -1])('is off by more than 1/64 of the sizes of its terms: %d', (sign) => {
    for (const rows of [[1], [0, 2]]) {
      expect(isTold((0.99 * sign) / 64, rows)).toBe(false);
      expect(isTold((1.01 * sign) / 64, rows)).toBe(true);
    }
  });
});
