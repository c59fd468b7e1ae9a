import { describe, expect, it } from 'vitest';
import { lseFaults } from '../../../../src/audit/gradients/diagnosis/statistics/lse-faults.js';
import { filledProblem } from '../../../setup/problems.js';
import { bareFailure } from './bare-failure.js';

/** The causes that may be, and the LSE of each row. */
const found = (lse: readonly number[]) => {
  const problem = filledProblem({ queries: lse.length, keys: 2, dim: 2 }, () => 1);
  return [...lseFaults(bareFailure(problem, {}, [], lse))].map(({ id, change }) => [
    id,
    change.logarithm,
  ]);
};

const all = ['lse-base-2', 'lse-natural-for-base-2', 'lse-missing'];
const ids = (lse: readonly number[]) => found(lse).map(([id]) => id);

describe('an LSE that is taken for another', () => {
  it('is in another base, or 0; but that of a row that sees nothing stays', () => {
    const lse = [1.5, -2, 0, -Infinity];
    const wanted = [(x: number) => x / Math.LN2, (x: number) => x / Math.LOG2E, () => 0];
    const faults = found(lse);
    expect(faults.map(([id]) => id)).toEqual(all);
    faults.forEach(([, logarithm], i) => {
      lse.forEach((x, row) => {
        const one = (logarithm as Float64Array)[row];
        if (Number.isFinite(x)) expect(one).toBeCloseTo(wanted[i](x), 12);
        else expect(one).toBe(x);
      });
    });
  });

  it.each<[string, readonly number[], readonly string[]]>([
    ['0 in all rows', [0, 0], []],
    ['0, or of a row that sees nothing', [0, -Infinity], []],
    ['so near 0 that nothing changes', [0.9 * 2 ** -10, 0], []],
    ['at the least that changes something', [-(2 ** -10), 0], ['lse-missing']],
    ['at e^80', [80, 0], all],
    ['beyond it where it is missing', [-80.5, 0], all.slice(0, 2)],
    ['far beyond', [400, 0], []],
  ])('is told where the factor of P is a number that shows: %s', (_, lse, wanted) => {
    expect(ids(lse)).toEqual(wanted);
  });
});
