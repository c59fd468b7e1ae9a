import { describe, expect, it } from 'vitest';
import { maskHypotheses } from '../../../src/audit/diagnosis/hypotheses/mask-faults.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, sequencesOf } from '../../setup/problems.js';
import { contextOfFault, expectFamily, hypothesesOf } from './context.js';
import { Textbook, type Fault } from './textbook.js';

const fill = () => {
  const random = pseudorandom(5);
  return () => 2 * random();
};
const problemOf = (queries: number, keys: number, changes: Partial<Problem>) =>
  filledProblem({ heads: 2, queries, keys, dim: 2 }, fill(), changes);

/** A query sees the keys within these distances of its diagonal. */
type Sees = (by: number, key: number, query: number) => boolean;

/** Faults of masks of one range, for a problem of so many queries and keys. */
function faultsOf(problem: Problem, faults: Readonly<Record<string, Sees>>): Record<string, Fault> {
  const { queries, keys } = new Textbook(problem).shape;
  return Object.fromEntries(
    Object.entries(faults).map(([name, sees]) => [
      name,
      { sees: ({ query, key }) => sees(key - query - keys + queries, key, query) },
    ]),
  );
}

/** Keys that a query sees rightly: the first of them, and behind the last. */
function span(problem: Problem, query: number): { first: number; end: number } {
  const book = new Textbook(problem);
  const seen = Array.from({ length: book.shape.keys }, (_, key) => key).filter((key) =>
    book.sees({ query, key }),
  );
  return { first: seen[0] ?? 0, end: (seen.at(-1) ?? -1) + 1 };
}

const inTile = (size: number) => ({ up: (x: number) => Math.ceil(x / size) * size });

/** What every problem of these sizes has beside its own faults. */
function common(problem: Problem, right: Sees): Record<string, Sees> {
  const { keys } = new Textbook(problem).shape;
  const partial = keys % 16;
  return {
    'first-key-dropped: the first key that a query sees is dropped': (by, key, query) =>
      right(by, key, query) && key > span(problem, query).first,
    'first-key-dropped: key 0 is dropped': (by, key, query) => right(by, key, query) && key > 0,
    ...(problem.causal
      ? {}
      : {
          'last-key-dropped: the last key is dropped': (by: number, key: number, query: number) =>
            right(by, key, query) && key < keys - 1,
        }),
    ...(keys > 16 && partial > 0
      ? {
          'last-tile-dropped: the last, partial tile of 16 keys is dropped': (
            by: number,
            key: number,
            query: number,
          ) => right(by, key, query) && key < keys - partial,
        }
      : {}),
  };
}

/** Causal faults by tile of 16 keys and more, for up to 32 keys. */
function byTile(problem: Problem, right: Sees, left = -1): Record<string, Sees> {
  const { keys } = new Textbook(problem).shape;
  if (keys <= 16) return {};
  return {
    'causal-limit-by-tile: the causal limit is rounded up to tiles of 16 keys': (_, key, query) => {
      const { first, end } = span(problem, query);
      return end > first && key >= first && key < inTile(16).up(end);
    },
    'causal-limit-by-tile: the tile of 16 keys on the causal diagonal is dropped': (
      by,
      key,
      query,
    ) => right(by, key, query) && key < Math.floor(span(problem, query).end / 16) * 16,
    'causal-limit-by-tile: the causal limit is 16 keys too far': (by) =>
      by <= 16 && (left < 0 || by >= -left),
  };
}

const alignment =
  'mask-aligned-top-left: the mask is aligned to the top left, not to the bottom right';

describe('hypotheses about masks', () => {
  it.each([
    [5, 5],
    [4, 9],
    [7, 20],
    [9, 4],
  ])('predict a causal mask gone wrong, of %i queries and %i keys', (queries, keys) => {
    const problem = problemOf(queries, keys, { causal: true });
    const right: Sees = (by) => by <= 0;
    expectFamily(
      maskHypotheses,
      problem,
      faultsOf(problem, {
        'causal-mask-missing: the causal mask is missing': () => true,
        'causal-limit-late: the causal limit is one key too far': (by) => by <= 1,
        'causal-limit-early: the causal limit is one key short: the diagonal is masked': (by) =>
          by < 0,
        ...byTile(problem, right),
        ...(queries === keys ? {} : { [alignment]: (_, key, query) => key <= query }),
        ...common(problem, right),
      }),
    );
  });

  it('predict a causal mask that was not asked for', () => {
    for (const keys of [4, 16, 17, 32, 33]) {
      const problem = problemOf(4, keys, {});
      const more =
        keys === 33
          ? {
              'last-tile-dropped: the last, partial tile of 32 keys is dropped': (
                _: number,
                key: number,
              ) => key < 32,
            }
          : {};
      expectFamily(
        maskHypotheses,
        problem,
        faultsOf(problem, {
          'causal-mask-unasked: a causal mask is applied that the problem does not have': (by) =>
            by <= 0,
          ...common(problem, () => true),
          ...more,
        }),
      );
    }
  });

  it.each([
    [2, 1],
    [0, 3],
    [3, 0],
    [-1, 2],
    [2, -1],
  ])('predict a window of %i and %i gone wrong', (left, right) => {
    const problem = problemOf(5, 7, { window: { left, right } });
    const within = (l: number, r: number) => (by: number) =>
      (l < 0 || by >= -l) && (r < 0 || by <= r);
    const seen = within(left, right);
    const either: Record<string, Sees> = {};
    if (left >= 0) {
      either["window-ignored: the window's left limit is ignored"] = within(-1, right);
      either['window-limit: the window reaches one key too far to the left'] = within(
        left + 1,
        right,
      );
      if (left > 0)
        either['window-limit: the window is one key short on the left'] = within(left - 1, right);
    }
    if (right >= 0) {
      either["window-ignored: the window's right limit is ignored"] = within(left, -1);
      either['window-limit: the window reaches one key too far to the right'] = within(
        left,
        right + 1,
      );
      if (right > 0)
        either['window-limit: the window is one key short on the right'] = within(left, right - 1);
    }
    if (left >= 0 && right >= 0) either['window-ignored: the window is ignored'] = () => true;
    expectFamily(
      maskHypotheses,
      problem,
      faultsOf(problem, {
        'causal-mask-unasked: a causal mask is applied that the problem does not have': (by) =>
          by <= 0 && seen(by),
        [alignment]: (_, key, query) => seen(key - query),
        ...either,
        ...common(problem, seen),
      }),
    );
  });

  it.each([0, 2, -1])('predict a causal window gone wrong, of %i to the right', (reach) => {
    const problem = problemOf(20, 20, { causal: true, window: { left: 3, right: reach } });
    const seen: Sees = (by) => by <= 0 && by >= -3;
    const lateBy = (more: number) => (reach < 0 ? more : Math.min(more, reach));
    const tiles = byTile(problem, seen, 3);
    expectFamily(
      maskHypotheses,
      problem,
      faultsOf(problem, {
        'causal-mask-missing: the causal mask is missing': (by) =>
          by >= -3 && (reach < 0 || by <= reach),
        ...(reach === 0
          ? {}
          : {
              'causal-limit-late: the causal limit is one key too far': (by: number) =>
                by <= lateBy(1) && by >= -3,
            }),
        'causal-limit-early: the causal limit is one key short: the diagonal is masked': (by) =>
          by < 0 && by >= -3,
        ...tiles,
        'causal-limit-by-tile: the causal limit is 16 keys too far': (by) =>
          by <= lateBy(16) && by >= -3,
        "window-ignored: the window's left limit is ignored": (by) => by <= 0,
        'window-limit: the window reaches one key too far to the left': (by) => by <= 0 && by >= -4,
        'window-limit: the window is one key short on the left': (by) => by <= 0 && by >= -2,
        "window-limit-by-tile: the window's left limit is rounded down to tiles of 16 keys": (
          by,
          key,
          query,
        ) => by <= 0 && key >= Math.floor(span(problem, query).first / 16) * 16,
        ...common(problem, seen),
      }),
    );
  });

  it('align packed sequences each to its own corner', () => {
    const aligned = (sizes: readonly (readonly [number, number])[]) => {
      const [queries, keys] = [0, 1].map((of) => sizes.reduce((sum, one) => sum + one[of], 0));
      const problem = filledProblem({ queries, keys, dim: 2 }, fill(), {
        causal: true,
        sequences: sequencesOf(sizes),
      });
      const context = contextOfFault(problem);
      return { context, found: hypothesesOf(maskHypotheses, context).get(alignment) };
    };
    expect(
      aligned([
        [5, 5],
        [0, 0],
      ]).found,
    ).toBeUndefined();
    const { found, context } = aligned([
      [2, 4],
      [3, 4],
    ]);
    const book = new Textbook(context.input.problem);
    for (const row of context.sample) {
      const second = row.query >= 2;
      const first = second ? 4 : 0;
      const own = row.query - (second ? 2 : 0);
      const expected = book.row(row.row, {
        sees: ({ key }) => key >= first && key < first + 4 && key - first <= own,
      });
      expect(found!.predict(row)!.lse).toBeCloseTo(expected.lse, 12);
    }
  });
});
