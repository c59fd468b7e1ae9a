import { describe, expect, it } from 'vitest';
import {
  rowFactorHypotheses,
  rowSumHypotheses,
} from '../../../src/audit/diagnosis/hypotheses/row-sum-faults.js';
import { splitHypotheses } from '../../../src/audit/diagnosis/hypotheses/split-faults.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOf, contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type Fault } from './textbook.js';

const random = pseudorandom(41);
const problemOf = (keys: number, changes: Partial<Problem> = {}, queries = 3, heads = 2) =>
  filledProblem({ batch: heads, heads, queries, keys, dim: 2 }, () => 2 * random(), changes);

type Counts = (key: number, row: { readonly first: number; readonly last: number }) => boolean;

/** The keys that make the row sum, by what a statement says; those of up to 40 keys. */
function partialSums(keys: number): Record<string, Counts> {
  const sums: Record<string, Counts> = {
    'key 0 is not in the row sum': (key) => key > 0,
    'the last key is not in the row sum': (key, { last }) => key < last,
  };
  for (const stride of [2, 4, 8, 16, 32].filter((one) => one < keys))
    for (let from = 0; from < stride; from++) {
      const isOne = (key: number) => key >= from && (key - from) % stride === 0;
      if (stride <= 4)
        sums[`the row sum takes one key in ${stride} only, from key ${from} on`] = isOne;
      if (stride >= 4)
        sums[`the row sum leaves out one key in ${stride}, from key ${from} on`] = (key) =>
          !isOne(key);
    }
  for (const size of [32, 64, 128].filter((one) => one / 2 < keys)) {
    sums[`the row sum takes the first ${size / 2} of each ${size} keys only`] = (key) =>
      key % size < size / 2;
    sums[`the row sum takes the second ${size / 2} of each ${size} keys only`] = (key) =>
      key % size >= size / 2;
    for (let from = 0; from < size; from += size / 4)
      sums[`the row sum leaves out keys ${from} to ${from + size / 4 - 1} of each ${size}`] = (
        key,
      ) => key % size < from || key % size >= from + size / 4;
  }
  for (const size of [16, 32].filter((one) => one < keys)) {
    const tile = (key: number) => Math.floor(key / size);
    sums[`the last tile of ${size} keys is not in the row sum`] = (key, { last }) =>
      tile(key) !== tile(last);
    sums[`the first tile of ${size} keys is not in the row sum`] = (key, { first }) =>
      tile(key) !== tile(first);
  }
  return sums;
}

/** The first and the last key that a query sees. */
function seenBy(book: Textbook, query: number): { first: number; last: number } {
  const seen = Array.from({ length: book.shape.keys }, (_, key) => key).filter((key) =>
    book.sees({ query, key }),
  );
  return { first: seen[0], last: seen.at(-1)! };
}

describe('hypotheses about a row sum', () => {
  it.each([
    [5, {}],
    [37, { window: { left: 18, right: -1 }, causal: true }],
  ] as const)('predict sums over part of %i keys, with their LSE and without', (keys, changes) => {
    const problem = problemOf(keys, changes, 3, 1);
    const book = new Textbook(problem);
    const context = contextOfFault(problem);
    const found = hypothesesOf(rowSumHypotheses, context);
    const sums = partialSums(keys);
    const id = 'row-sum-over-part-of-the-keys: ';
    const names = Object.keys(sums).flatMap((one) => [one, `${one}, but not in the LSE`]);
    expect([...found.keys()].filter((name) => name.startsWith(id)).sort()).toEqual(
      names.map((name) => id + name).sort(),
    );
    for (const [name, counts] of Object.entries(sums)) {
      const fault: Fault = {
        inSum: ({ query, key }) => (counts(key, seenBy(book, query)) ? 1 : 0),
      };
      const plain = (row: number) => book.row(row, fault);
      const sample = context.sample.filter(({ row }) => plain(row).lse > -Infinity);
      for (const row of context.sample)
        if (!sample.includes(row)) expect(found.get(id + name)!.predict(row)).toBeNull();
      expectPredicts(found.get(id + name)!, { ...context, sample }, plain, 1e-9);
      expectPredicts(
        found.get(`${id + name}, but not in the LSE`)!,
        { ...context, sample },
        (row) => ({ ...plain(row), lse: book.row(row).lse }),
        1e-9,
      );
    }
  });

  it('predict keys of zeros, and sums that are not divided by or divided by twice', () => {
    const problem = problemOf(5);
    const book = new Textbook(problem);
    const context = contextOfFault(problem);
    const found = hypothesesOf(rowSumHypotheses, context);
    const zeros = (count: number): Fault => ({ added: (maximum) => count * Math.exp(-maximum) });
    const own = (row: number) => {
      const { out, lse } = book.row(row);
      const sum = Math.exp(lse - Math.max(...book.scores(row)));
      return { out, lse, sum };
    };
    const padded = [16, 32, 64, 128, 256].map((size) => [
      `tail-keys-counted: ${size - 5} keys of zeros past the last one, up to a multiple of ${size}, are counted`,
      zeros(size - 5),
    ]);
    const faults = {
      ...(Object.fromEntries(padded) as Record<string, Fault>),
      'zero-key-counted: one more key with score 0, a sink, is in the row sum': zeros(1),
    };
    for (const [name, fault] of Object.entries(faults)) {
      expectPredicts(found.get(name)!, context, (row) => book.row(row, fault));
      expectPredicts(found.get(`${name}, but not in the LSE`)!, context, (row) =>
        book.row(row, { ...fault, addedInLse: () => 0 }),
      );
    }
    const divided = 'not-normalised: the output is not divided by the row sum';
    expectPredicts(found.get(divided)!, context, (row) => {
      const { out, lse, sum } = own(row);
      return { out: out.map((x) => x * sum), lse };
    });
    const twice = 'normalised-twice: the output is divided by the row sum twice';
    expectPredicts(found.get(twice)!, context, (row) => {
      const { out, lse, sum } = own(row);
      return { out: out.map((x) => x / sum), lse };
    });
    expect(found.size).toBe(2 * (5 + 1 + Object.keys(partialSums(5)).length) + 2);
  });

  it('pad sequences to their longest, and nothing under a causal mask or where all are whole', () => {
    const tails = (problem: Problem) =>
      [...hypothesesOf(rowSumHypotheses, contextOfFault(problem)).values()].filter(
        ({ id }) => id === 'tail-keys-counted',
      );
    expect(tails(problemOf(5, { causal: true }))).toEqual([]);
    // 256 and 128 keys are multiples of all sizes up to theirs.
    expect(tails(problemOf(16)).length).toBe(2 * 4);
    expect(tails(problemOf(256, {}, 1))).toEqual([]);
    const sequences = [
      { firstQuery: 0, queries: 1, firstKey: 0, keys: 6 },
      { firstQuery: 1, queries: 2, firstKey: 6, keys: 2 },
    ];
    const packed = filledProblem({ queries: 3, keys: 8, dim: 2 }, () => 2 * random(), {
      sequences,
    });
    const book = new Textbook(packed);
    const seen: Fault = { sees: ({ query, key }) => (query === 0 ? key < 6 : key >= 6) };
    const context = contextOf(packed, book.rows(seen));
    const found = hypothesesOf(rowSumHypotheses, context);
    const name =
      'tail-keys-counted: 4 keys of zeros past the end of a sequence, up to the longest sequence, are counted';
    expectPredicts(found.get(name)!, context, (row) =>
      book.row(row, {
        ...seen,
        added: (maximum, { query }) => (query === 0 ? 0 : 4) * Math.exp(-maximum),
      }),
    );
  });

  it('take the factor of a row from its LSE, where enough rows have one', () => {
    const problem = problemOf(6);
    const book = new Textbook(problem);
    const fault: Fault = { inSum: ({ query, key }) => 1 + 0.25 * ((query + key) % 3) };
    const context = contextOfFault(problem, fault);
    const [own] = hypothesesOf(rowFactorHypotheses, context).values();
    expectPredicts(own, context, (row) => book.row(row, fault));
    expect(own.fitted).toBe(true);
    const several = (isDamaged: (row: number) => boolean, hasLse = true) =>
      hypothesesOf(rowFactorHypotheses, contextOfFault(problem, fault, { isDamaged, hasLse })).size;
    expect(several((row) => row < 8)).toBe(1);
    expect(several((row) => row < 7)).toBe(0);
    expect(several(() => true, false)).toBe(0);
    const infinite = contextOfFault(problem, {
      lse: (lse, { at }) => (at.query > 0 ? lse : -Infinity),
    });
    expect([...rowFactorHypotheses(infinite)]).toEqual([]);
  });
});

/** What the parts of a row's keys give, each with its own LSE. */
function partsOf(book: Textbook, row: number, length: number) {
  const parts: (ReturnType<Textbook['row']> & { readonly begin: number })[] = [];
  for (let begin = 0; begin < book.shape.keys; begin += length) {
    const sees: Fault['sees'] = (at) => book.sees(at) && at.key >= begin && at.key < begin + length;
    const part = book.row(row, { sees });
    if (part.lse > -Infinity) parts.push({ ...part, begin });
  }
  return parts;
}

describe('hypotheses about splits', () => {
  it('predict partial results that are merged wrongly', () => {
    const problem = problemOf(11, { causal: true });
    const book = new Textbook(problem);
    const context = contextOfFault(problem);
    const found = hypothesesOf(splitHypotheses, context);
    type Weight = (lse: number, all: number, splits: number) => number;
    const merges: readonly (readonly [string, Weight, boolean])[] = [
      ['splits-averaged: averaged, whatever their row sums', (_l, _a, splits) => 1 / splits, false],
      [
        'splits-base-2: weighed by powers of two of their natural LSE',
        (lse, all) => 2 ** (lse - all),
        false,
      ],
      [
        'splits-base-2: weighed by powers of two of their natural LSE, over the sum of these',
        (lse) => 2 ** lse,
        true,
      ],
      [
        'splits-base-2: weighed by powers of e of their LSE in base 2, over the sum of these',
        (lse) => Math.exp(lse / Math.LN2),
        true,
      ],
      ['splits-added: added, not averaged by their row sums', () => 1, false],
    ];
    // 11 keys in 2, 3, 4, 5, 6 parts; in 8 they are two keys each, as in 6, and in 16 and 32 one each.
    const lengths = new Map([2, 3, 4, 5, 6, 8, 16, 32].map((n) => [Math.ceil(11 / n), n]));
    for (const [what, weight, isDivided] of merges)
      for (const length of lengths.keys()) {
        const splits = Math.ceil(11 / length);
        const [id, words] = what.split(': ') as [string, string];
        const name = `${id}: the partial results of ${splits} splits of ${length} keys are ${words}`;
        expectPredicts(found.get(name)!, context, (row) => {
          const own = book.row(row);
          const parts = partsOf(book, row, length);
          if (parts.length < 2) return own;
          const factors = parts.map(({ lse }) => weight(lse, own.lse, splits));
          const sum = isDivided ? factors.reduce((a, b) => a + b, 0) : 1;
          const out = own.out.map((_, c) =>
            parts.reduce((all, part, i) => all + (factors[i] / sum) * part.out[c], 0),
          );
          return { out, lse: own.lse };
        });
      }
    const neighbours = predictNeighbours(book, context, [...lengths.keys()]);
    expect(found.size).toBe((merges.length + neighbours) * lengths.size);
  });

  /** Expects the predictions of parts weighed by LSEs of neighbours; the number of such neighbours. */
  function predictNeighbours(
    book: Textbook,
    context: ReturnType<typeof contextOfFault>,
    lengths: readonly number[],
  ): number {
    const found = hypothesesOf(splitHypotheses, context);
    const { heads, queries } = book.shape;
    const neighbours = [
      { of: 'head', size: heads, inner: queries },
      { of: 'query', size: queries, inner: 1 },
    ]
      .filter(({ size }) => size > 1)
      .flatMap((one) => [1, -1].map((step) => ({ ...one, step })));
    for (const { of, size, inner, step } of neighbours)
      for (const length of lengths) {
        const side = step === 1 ? 'next' : 'previous';
        const name = `splits-lse-of-neighbouring-${of}: the partial results of ${Math.ceil(11 / length)} splits of ${length} keys are weighed by the LSEs of the ${side} ${of}`;
        expectPredicts(found.get(name)!, context, (row) => {
          const own = book.row(row);
          const at = Math.floor(row / inner) % size;
          const others = partsOf(book, row + (((at + step + size) % size) - at) * inner, length);
          const pairs = partsOf(book, row, length).flatMap((part) => {
            const other = others.find(({ begin }) => begin === part.begin);
            return other === undefined ? [] : [{ part, weight: Math.exp(other.lse) }];
          });
          if (pairs.length < 2) return own;
          const sum = pairs.reduce((all, { weight }) => all + weight, 0);
          const out = own.out.map((_, c) =>
            pairs.reduce((all, { part, weight }) => all + (weight / sum) * part.out[c], 0),
          );
          return { out, lse: own.lse };
        });
      }
    return neighbours.length;
  }
});
