import { describe, expect, it } from 'vitest';
import { movedFaults } from '../../../../../src/audit/gradients/diagnosis/stored/moved-faults.js';
import type { Problem } from '../../../../../src/problem/index.js';
import { filledProblem } from '../../../../setup/problems.js';
import { bareFailure, drawGradient, type Named } from '../../definitions/bare-failure.js';
import { drawFrom } from '../../definitions/random-pairs.js';

type Values = Partial<Record<Named, Float64Array>>;

/** The causes that are told of gradients that have these values; one that is left out has its exact ones. */
function said(problem: Problem, exact: Values, changed: Values) {
  const gradients = Object.entries(exact).map(([name, own]) => {
    const made = drawGradient(problem, name as Named, drawFrom(4));
    return [name, { ...made, exact: own, values: changed[name as Named] ?? own }] as const;
  });
  const failing = Object.keys(changed) as Named[];
  const failed = bareFailure(problem, Object.fromEntries(gradients), failing);
  return [...movedFaults(failed)];
}

/** Exact gradients of a problem, of numbers that are not alike. */
function exactOf(problem: Problem): Record<Named, Float64Array> {
  const draw = drawFrom(9);
  const ofOne = (name: Named) => drawGradient(problem, name, draw).exact;
  return { dq: ofOne('dq'), dk: ofOne('dk'), dv: ofOne('dv') };
}

const [heads, rows, dim] = [2, 5, 4] as const;
const problem = filledProblem({ heads, queries: rows, keys: rows, dim }, () => 1);

describe('rows that are those of others', () => {
  it.each([
    ['dq', 1, 'every row of dQ is that of the query behind'],
    ['dq', -1, 'every row of dQ is that of the query before'],
    ['dk', 1, 'every row of dK is that of the key behind'],
    ['dv', -1, 'every row of dV is that of the key before'],
  ] as const)('lie behind or before: %s, %d', (name, by, sentence) => {
    const exact = exactOf(problem);
    const own = exact[name];
    // Once around the ends of a head, and once without: the last row, or the first, has its own.
    const from = (edge: (row: number) => number) =>
      own.map((_, i) => {
        const at = Math.floor(i / dim);
        const [head, row] = [Math.floor(at / rows), at % rows];
        return own[(head * rows + edge(row + by)) * dim + (i % dim)];
      });
    const wanted = [
      from((row) => (row + rows) % rows),
      from((row) => Math.min(Math.max(row, 0), rows - 1)),
    ];
    const found = said(problem, exact, { [name]: wanted[0] });
    const told = found.filter((one) => one.sentence === sentence);
    expect(told.map(({ predicted }) => [...predicted[name]!])).toEqual(
      wanted.map((one) => [...one]),
    );
  });
});

describe('a gradient in the place of another', () => {
  const another = (exact: Values, changed: Values) =>
    said(problem, exact, changed)
      .filter(({ id }) => id === 'gradient-for-another')
      .map(({ sentence, predicted }) => ({ sentence, predicted }));
  const written = 'as where one is written in the place of another';

  it('is told of each that fails', () => {
    const exact = exactOf(problem);
    const { dq, dk, dv } = exact;
    expect(another(exact, { dk: dv })).toEqual([
      { sentence: `dK is dV, ${written}`, predicted: { dk: dv } },
    ]);
    expect(another(exact, { dk: dv, dv: dk })).toEqual([
      { sentence: `dK is dV and dV is dK, ${written}`, predicted: { dk: dv, dv: dk } },
    ]);
    expect(another(exact, { dk: dq, dv: dv.map((x) => -x) })).toEqual([]);
  });

  it('is none of another size', () => {
    const longer = filledProblem({ heads, queries: rows, keys: 2 * rows, dim }, () => 1);
    const exact = exactOf(longer);
    const { dk, dv } = exact;
    const ids = (changed: Values) => said(longer, exact, changed).map(({ id }) => id);
    expect(ids({ dq: dk.slice(0, exact.dq.length) })).not.toContain('gradient-for-another');
    expect(ids({ dk: dv })).toContain('gradient-for-another');
  });
});

describe('a head that is another', () => {
  const one = filledProblem({ heads: 2, queries: 1, keys: 1, dim: 8 }, () => 1);
  // Heads at right angles, of a squared length of 14.
  const [first, second] = [
    [3, 2, 1, 0, 0, 0, 0, 0],
    [0, 0, 0, 3, 2, 1, 0, 0],
  ];
  const exact = { dq: Float64Array.of(...first, ...second) };

  /** Whether heads that changed places, with errors at right angles to them, are told. */
  function isTold(factor: number, errors: readonly [number, number]): boolean {
    const [a, b] = [second, first].map((head) =>
      head.map((x, i) => factor * x + (i < 6 ? 0 : errors[i - 6])),
    );
    const found = said(one, exact, { dq: Float64Array.of(...a, ...b) });
    return found.some(({ id }) => id === 'heads-moved');
  }

  it('makes more than 7/8 of its squares', () => {
    expect(isTold(1, [0, 0])).toBe(true);
    // 14 of 15.8, of 16 and of 16.2.
    expect(isTold(1, [1, 0.9])).toBe(true);
    expect(isTold(1, [1, 1])).toBe(false);
    expect(isTold(1, [1, 1.1])).toBe(false);
  });

  it('has a slope that is less than 1/8 from 1', () => {
    expect(isTold(1.12, [0, 0])).toBe(true);
    expect(isTold(0.88, [0, 0])).toBe(true);
    expect(isTold(1.125, [0, 0])).toBe(false);
    expect(isTold(0.875, [0, 0])).toBe(false);
  });
});
