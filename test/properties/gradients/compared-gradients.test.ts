import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  laws,
  type KernelPromises,
  type LawId,
  type LawStrength,
} from '../../../properties/index.js';
import { describePlace } from '../../../src/audit/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';
import { formatNumber } from '../../../src/words/index.js';
import type { Gradients } from './defined-backward.js';
import {
  drawnCase,
  indexAt,
  placesOf,
  seesKey,
  shapesOf,
  upTo,
  type DrawnKinds,
} from './drawn-case.js';
import { tryByHand, type KnownRun } from './law-by-hand.js';

type Name = keyof Gradients;
type Place = readonly [batch: number, head: number, row: number, column: number];

/** The value that a law compares an element with, and by how much it may differ; null where it compares nothing. */
type Expected = (
  name: Name,
  place: Place,
  runs: readonly KnownRun[],
  choice: number,
) => Limit | null;

interface Limit {
  readonly value: number;
  readonly limit: number;
}

/** A law in some of its forms, the run that is changed, and what an element of it is compared with. */
interface Comparison {
  readonly law: LawId;
  /** The forms of which it is; default all. */
  readonly isForm?: (choice: number) => boolean;
  readonly strength?: LawStrength;
  readonly promises?: KernelPromises;
  readonly kinds?: DrawnKinds;
  /** The run that is changed; default the last. */
  readonly run?: number;
  /** Whether the law says nothing of a problem; default never. */
  readonly isIdle?: (problem: Problem, shape: ProblemShape) => boolean;
  /** What a message says of the expected number and of the one that was found. */
  readonly words: (
    choice: number,
    shape: ProblemShape,
    problem: Problem,
  ) => readonly [string, string];
  readonly expected: Expected;
}

const shapeOf = ({ problem }: KnownRun, name: Name) => shapesOf(problemShape(problem))[name];

/** An element of a run, times a factor. */
const of = (known: KnownRun, name: Name, place: Place, factor = 1): Limit => {
  const at = indexAt(shapeOf(known, name), place);
  return {
    value: factor * known.values[name][at],
    limit: Math.abs(factor) * known.bounds[name][at],
  };
};
const sum = (...all: readonly Limit[]): Limit => ({
  value: all.reduce((total, { value }) => total + value, 0),
  limit: all.reduce((total, { limit }) => total + limit, 0),
});
/** A value with the limit of both. */
const within = ({ value, limit }: Limit, other: Limit): Limit => ({
  value,
  limit: limit + other.limit,
});
const exactly = ({ value }: Limit): Limit => ({ value, limit: 0 });
const nothing: Limit = { value: 0, limit: 0 };

/** The element of the first run at another place. */
const moved =
  (before: (...of: Parameters<Expected>) => Place): Expected =>
  (name, place, runs, choice) => {
    const origin = before(name, place, runs, choice);
    return within(of(runs[0], name, origin), of(runs[runs.length - 1], name, place));
  };

const factors = [2, 1 / 2, 8, 1 / 8, 32, 1 / 32];

const backwards = (count: number, i: number) => count - 1 - i;

const comparisons: readonly Comparison[] = [
  {
    law: 'gradients-of-zero',
    kinds: { masked: true },
    words: () => ['exactly', 'with a dO of zeros'],
    expected: () => nothing,
  },
  {
    law: 'gradients-linear',
    isForm: (choice) => choice % 2 === 0,
    kinds: { masked: true },
    words: (choice) => [
      `times 2^${Math.log2(factors[choice / 2])} at first`,
      `with dO times 2^${Math.log2(factors[choice / 2])}`,
    ],
    expected: (name, place, [first, last], choice) =>
      within(of(first, name, place, factors[choice / 2]), of(last, name, place)),
  },
  {
    law: 'gradients-linear',
    isForm: (choice) => choice % 2 === 1,
    kinds: { packed: true },
    run: 0,
    words: () => ['of two parts of dO together', 'of all of it'],
    expected: (name, place, [whole, ...parts]) =>
      within(sum(...parts.map((part) => of(part, name, place))), of(whole, name, place)),
  },
  {
    law: 'gradients-determinism',
    kinds: { masked: true },
    words: (choice) => ['at first', choice === 1 ? 'again, after another dO' : 'again'],
    expected: moved((_, place) => place),
  },
  {
    law: 'gradients-determinism',
    strength: 'bits',
    kinds: { packed: true },
    words: (choice) => ['at first', choice === 1 ? 'again, after another dO' : 'again'],
    expected: (name, place, [first]) => exactly(of(first, name, place)),
  },
  {
    law: 'gradients-of-level-values',
    words: () => ['exactly', 'with one value for all keys'],
    expected: (name, place, [run]) =>
      name === 'dv' ? null : within(nothing, of(run, name, place)),
  },
  {
    law: 'gradients-of-one-key',
    words: () => ['exactly', 'with one key'],
    expected: (name, place, [run]) =>
      name === 'dv' ? null : within(nothing, of(run, name, place)),
  },
  {
    law: 'gradients-of-unseen',
    kinds: { masked: true },
    isIdle: (problem, shape) => {
      const sees = seesKey(problem, shape);
      return (
        upTo(shape.queries).every((i) => upTo(shape.keys).some((j) => sees(i, j))) &&
        upTo(shape.keys).every((j) => upTo(shape.queries).some((i) => sees(i, j)))
      );
    },
    words: () => ['exactly', 'though nothing adds to it'],
    expected: (name, [, , row], [run]) => {
      const shape = problemShape(run.problem);
      const sees = seesKey(run.problem, shape);
      const isSeen =
        name === 'dq'
          ? upTo(shape.keys).some((key) => sees(row, key))
          : upTo(shape.queries).some((query) => sees(query, row));
      return isSeen ? null : nothing;
    },
  },
  {
    law: 'gradients-nan-row',
    strength: 'bits',
    kinds: { masked: true, packed: true },
    isIdle: (_, { batch, heads, kvHeads, queries }) =>
      batch * heads * queries === 1 && kvHeads === 1,
    words: (choice, { batch, heads, queries }) => {
      const row = Math.floor((choice * batch * heads * queries) / 16);
      return [
        'at first',
        `with NaN in row ${row % queries} of dO of head ${Math.floor(row / queries) % heads}`,
      ];
    },
    expected: (name, [batch, head, row, column], [first], choice) => {
      const { batch: batches, heads, queries, groupSize } = problemShape(first.problem);
      const chosen = Math.floor((choice * batches * heads * queries) / 16);
      const [ofBatch, ofHead] = [
        Math.floor(chosen / queries / heads),
        Math.floor(chosen / queries) % heads,
      ];
      const isReached =
        batch === ofBatch &&
        (name === 'dq'
          ? head === ofHead && row === chosen % queries
          : head === Math.floor(ofHead / groupSize));
      return isReached ? null : exactly(of(first, name, [batch, head, row, column]));
    },
  },
  {
    law: 'gradients-heads',
    isForm: (choice) => choice === 0,
    kinds: { masked: true },
    isIdle: (_, { batch, heads }) => batch * heads === 1,
    words: () => ['at first', 'with batches and heads in another order'],
    expected: moved((name, [batch, head, row, column], [{ problem }]) => {
      const { batch: batches, kvHeads, groupSize } = problemShape(problem);
      const size = name === 'dq' ? groupSize : 1;
      const kvHead = backwards(kvHeads, Math.floor(head / size));
      return [backwards(batches, batch), kvHead * size + (head % size), row, column];
    }),
  },
  {
    law: 'gradients-grouped',
    kinds: { masked: true },
    run: 0,
    isIdle: (_, { groupSize }) => groupSize === 1,
    words: (_, { groupSize }) => [
      'of the query heads together, each with keys of its own,',
      `with keys shared by ${groupSize}`,
    ],
    expected: (name, [batch, head, row, column], [grouped, apart]) => {
      const { groupSize } = problemShape(grouped.problem);
      const own = of(grouped, name, [batch, head, row, column]);
      if (name === 'dq') return within(of(apart, name, [batch, head, row, column]), own);
      const shares = upTo(groupSize, head * groupSize).map((h) =>
        of(apart, name, [batch, h, row, column]),
      );
      return within(sum(...shares), own);
    },
  },
  {
    law: 'gradients-key-permutation',
    isForm: (choice) => choice === 0,
    kinds: { masked: true },
    isIdle: ({ causal, window }) => causal || window !== null,
    words: () => ['at first', 'with all keys permuted'],
    expected: moved((name, [batch, head, row, column], [{ problem }]) => [
      batch,
      head,
      name === 'dq' ? row : backwards(problemShape(problem).keys, row),
      column,
    ]),
  },
  {
    law: 'gradients-key-shift',
    kinds: { masked: true, packed: true },
    words: (choice, _, { scale }) => {
      const nats = [1, -1, 8, -8, 64, -64][choice];
      const exponent = Math.round(Math.log2(Math.abs(nats) / scale));
      return [
        'at first',
        `with ${formatNumber(Math.sign(nats) * 2 ** Math.floor(exponent / 2))} added to the last column of all keys`,
      ];
    },
    expected: moved((_, place) => place),
  },
  {
    law: 'gradients-alone',
    kinds: { masked: true },
    isIdle: (_, { batch }) => batch === 1,
    words: (choice, { batch }) => [
      'at first',
      `with sequence ${Math.floor((choice * batch) / 8)} alone`,
    ],
    expected: moved((_, [, ...place], [{ problem }], choice) => [
      Math.floor((choice * problemShape(problem).batch) / 8),
      ...place,
    ]),
  },
  {
    law: 'gradients-alone',
    kinds: { packed: true, masked: true },
    words: (choice) => ['at first', `with sequence ${choice < 4 ? 0 : 1} alone`],
    expected: moved((name, [batch, head, row, column], [{ problem }], choice) => {
      const { firstQuery, firstKey } = problem.sequences![choice < 4 ? 0 : 1];
      return [batch, head, row + (name === 'dq' ? firstQuery : firstKey), column];
    }),
  },
  {
    law: 'gradients-decode',
    kinds: { masked: true },
    isIdle: (_, { queries }) => queries === 1,
    words: (choice, { queries }) => {
      const count = 1 + Math.floor((choice * (queries - 1)) / 16);
      return [
        'among all',
        count === 1 ? 'with the last row alone' : `with the last ${count} rows alone`,
      ];
    },
    expected: moved((name, [batch, head, row, column], [{ problem }], choice) => {
      const { queries } = problemShape(problem);
      const left = queries - 1 - Math.floor((choice * (queries - 1)) / 16);
      return [batch, head, name === 'dq' ? row + left : row, column];
    }),
  },
  {
    law: 'gradients-hidden-nan',
    kinds: { masked: true },
    isIdle: (problem, shape) => {
      const sees = seesKey(problem, shape);
      return upTo(shape.keys).every((j) => upTo(shape.queries).some((i) => sees(i, j)));
    },
    words: (choice) => [
      'at first',
      `with NaN in ${choice === 0 ? 'K' : 'V'} at keys that no query sees`,
    ],
    expected: (name, place, [first]) => within(of(first, name, place), of(first, name, place)),
  },
  {
    law: 'gradients-hidden-nan',
    strength: 'bits',
    kinds: { masked: true, packed: true },
    isIdle: (problem, shape) => {
      const sees = seesKey(problem, shape);
      return upTo(shape.keys).every((j) => upTo(shape.queries).some((i) => sees(i, j)));
    },
    words: (choice) => [
      'at first',
      `with NaN in ${choice === 0 ? 'K' : 'V'} at keys that no query sees`,
    ],
    expected: (name, place, [first]) => exactly(of(first, name, place)),
  },
];

describe.each(comparisons)('$law, to the $strength, $kinds', (one) => {
  const { law, kinds = {}, isForm = () => true, ...trial } = one;
  const forms = upTo(laws[law].choices).filter(isForm);

  it('compares each element with what it is by definition, by the bounds of both', async () => {
    await fc.assert(
      fc.asyncProperty(
        drawnCase(kinds),
        fc.constantFrom(...forms),
        fc.nat(),
        fc.boolean(),
        async (given, choice, which, isUp) => {
          const of = { ...trial, choice };
          const { runs, statement, inapplicable } = await tryByHand(law, given, of);
          const shape = problemShape(given.problem);
          expect(statement).toBeNull();
          expect(inapplicable).toBe(one.isIdle?.(given.problem, shape) ?? false);
          if (inapplicable) return;
          const run = one.run ?? runs.length - 1;
          const known = runs[run];
          const quantities = (['dq', 'dk', 'dv'] as const).map((name) =>
            [...placesOf(shapeOf(known, name))].map((place) => {
              const at = indexAt(shapeOf(known, name), place);
              return { name, place, at, found: one.expected(name, place, runs, choice) };
            }),
          );
          const all = quantities.flat();
          const { name, place, at, found } = all[which % all.length];
          /** What the law says where elements are so much more than they should be, in their limits. */
          const told = async (changed: readonly (typeof all)[number][], x: number, bound = NaN) => {
            const change = ({ values, bounds }: KnownRun, index: number) => {
              if (index !== run) return;
              for (const { name, at, found } of changed) {
                const { value, limit } = found ?? { value: 0, limit: 1 };
                values[name][at] = value + (isUp ? x : -x) * (limit === 0 ? 2 ** -30 : limit);
                if (!Number.isNaN(bound)) bounds[name][at] = bound;
              }
            };
            return (await tryByHand(law, given, { ...of, change })).statement;
          };
          const only = [{ name, place, at, found }];
          if (found === null) {
            expect(await told(only, NaN)).toBeNull();
            return;
          }
          const { limit } = found;
          const [batch, head, row, column] = place;
          const where = { batch, head, column, ...(name === 'dq' ? { query: row } : { key: row }) };
          const prose = `d${name[1].toUpperCase()} at ${describePlace(where)} is `;
          expect(await told(only, limit === 0 ? 0 : 0.99)).toBeNull();
          const [usual, changed] = one.words(choice, shape, given.problem);
          const explained = limit === 0 ? '' : `; rounding explains ${formatNumber(limit)}`;
          const step = limit === 0 ? 2 ** -30 : limit;
          const wrong = found.value + (isUp ? 1.01 : -1.01) * step;
          expect(await told(only, 1.01)).toBe(
            `${prose}${found.value} ${usual} but ${wrong} ${changed}${explained}`,
          );
          expect(await told(only, NaN)).toContain(prose);
          // Nothing is known of an element without a bound; a NaN at hidden keys adds nothing to that of the first run.
          if (limit > 0 && law !== 'gradients-hidden-nan')
            expect(await told(only, 1e9, Infinity)).toBeNull();
          const compared = quantities.find(([first]) => first.name === name)!;
          const alike = compared.filter(({ found }) => found !== null);
          const text = await told(alike, 1.01);
          const count = `(${alike.length} of ${alike.length} elements differ)`;
          if (alike.length > 1) expect(text).toContain(count);
          else expect(text).not.toContain('elements differ');
        },
      ),
      { numRuns: 4 },
    );
  });
});
