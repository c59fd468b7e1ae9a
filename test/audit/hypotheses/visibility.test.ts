import { describe, expect, it } from 'vitest';
import { visibilityHypotheses } from '../../../src/audit/diagnosis/hypotheses/visibility-faults.js';
import { filledProblem, pseudorandom, sequencesOf } from '../../setup/problems.js';
import { contextOf, expectFamily, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type At, type Fault } from './textbook.js';

const random = pseudorandom(31);
const [batch, heads, queries, keys] = [2, 2, 5, 6] as const;
const plain = filledProblem({ batch, heads, queries, keys, dim: 2 }, () => 2 * random());

/** Every fault as another mask. */
function ofMasks(masks: Readonly<Record<string, (at: At) => boolean>>): Record<string, Fault> {
  return Object.fromEntries(Object.entries(masks).map(([name, sees]) => [name, { sees }]));
}
const within = (x: number, last: number) => Math.min(Math.max(x, 0), last);

describe('hypotheses about which keys a query sees', () => {
  it.each([
    [[batch, heads, queries, keys]],
    [[heads, queries, keys]],
    [[queries, keys]],
    [[1, keys]],
    [[queries, 1]],
  ])('predict a mask %j read wrongly', (shape) => {
    const full = [1, 1, 1, 1, ...shape].slice(-4);
    const size = full.reduce((a, b) => a * b, 1);
    const data = Uint8Array.from({ length: size }, () => (random() > -0.4 ? 1 : 0));
    const at = (one: At, head: number, query: number, key: number) => {
      const place = [one.batch, head, query, key].map((x, i) => (full[i] === 1 ? 0 : x));
      return data[place.reduce((flat, x, i) => flat * full[i] + x, 0)] === 1;
    };
    const shifted = (what: 'key' | 'query', by: number) => (one: At) =>
      what === 'key'
        ? at(one, one.head, one.query, within(one.key + by, keys - 1))
        : at(one, one.head, within(one.query + by, queries - 1), one.key);
    const name = (what: string, where: string) =>
      `mask-shifted: the mask of each ${what} is that of the ${what} ${where} it`;
    expectFamily(
      visibilityHypotheses,
      { ...plain, mask: { shape, data } },
      {
        ...ofMasks({
          'mask-ignored: the mask is ignored': () => true,
          'mask-inverted: the mask hides what it should show': (one) =>
            !at(one, one.head, one.query, one.key),
          ...(full[3] > 1
            ? {
                [name('key', 'behind')]: shifted('key', 1),
                [name('key', 'before')]: shifted('key', -1),
              }
            : {}),
          ...(full[2] > 1
            ? {
                [name('query', 'behind')]: shifted('query', 1),
                [name('query', 'before')]: shifted('query', -1),
              }
            : {}),
          ...(full[1] > 1
            ? {
                'mask-of-other-head: the mask of head 0 is applied to every head': (one: At) =>
                  at({ ...one, batch: 0 }, 0, one.query, one.key),
              }
            : {}),
        }),
      },
    );
  });

  it('predict lists of blocks read too far and not far enough', () => {
    const [blockQueries, blockKeys] = [2, 2];
    const indices = [1, 0, 2, 2, 1, 0, 0, 2, 1];
    const counts = [2, 3, 0];
    const blockMask = {
      counts: { shape: [3], data: Int32Array.from(counts) },
      indices: { shape: [3, 3], data: Int32Array.from(indices) },
      blockQueries,
      blockKeys,
    };
    const listed = (more: number) => (one: At) => {
      const block = Math.floor(one.query / blockQueries);
      const count = within(counts[block] + more, 3);
      const seen = indices.slice(3 * block, 3 * block + count);
      return seen.includes(Math.floor(one.key / blockKeys));
    };
    expectFamily(
      visibilityHypotheses,
      { ...plain, blockMask },
      ofMasks({
        'block-mask-ignored: the block mask is ignored': () => true,
        'block-mask-short: the last block that each block of queries lists is left out': listed(-1),
        'block-mask-long: one block more than each block of queries lists is read': listed(1),
      }),
    );
  });

  it('predict documents whose boundaries are moved', () => {
    const ofQueries = [0, 0, 1, 1, 2, 0, 1, 1, 1, 2];
    const ofKeys = [0, 0, 0, 1, 1, 2, 0, 1, 2, 2, 2, 2];
    const segments = {
      queries: { shape: [batch, queries], data: Int32Array.from(ofQueries) },
      keys: { shape: [batch, keys], data: Int32Array.from(ofKeys) },
    };
    // A boundary that is one later: each place has the document of the one before it.
    const sees = (late: number, moved: { queries: boolean; keys: boolean }) => (one: At) => {
      const query = within(one.query - (moved.queries ? late : 0), queries - 1);
      const key = within(one.key - (moved.keys ? late : 0), keys - 1);
      return ofQueries[one.batch * queries + query] === ofKeys[one.batch * keys + key];
    };
    const boundary = (late: number, where: string) => ({
      [`segment-boundary: the documents' boundaries among the keys are one key too ${where}`]: sees(
        late,
        { queries: false, keys: true },
      ),
      [`segment-boundary: the documents' boundaries among the queries are one query too ${where}`]:
        sees(late, { queries: true, keys: false }),
      [`segment-boundary: the documents' boundaries are one place too ${where}`]: sees(late, {
        queries: true,
        keys: true,
      }),
    });
    expectFamily(
      visibilityHypotheses,
      { ...plain, segments },
      ofMasks({
        'segments-ignored: the documents are ignored': () => true,
        ...boundary(1, 'late'),
        ...boundary(-1, 'early'),
      }),
    );
  });

  it('predict a prefix that is too long, too short, or left out', () => {
    const diagonal = ({ query, key }: At) => key <= query + keys - queries;
    const upTo = (prefix: number) => (one: At) => one.key < prefix || diagonal(one);
    expectFamily(
      visibilityHypotheses,
      { ...plain, causal: true, prefix: 3 },
      ofMasks({
        'prefix-ignored: the prefix is ignored': diagonal,
        'prefix-limit: the prefix is one key too long': upTo(4),
        'prefix-limit: the prefix is one key short': upTo(2),
      }),
    );
    expectFamily(visibilityHypotheses, { ...plain, causal: true, prefix: 0 }, {});
  });
});

describe('hypotheses about packed sequences', () => {
  const sizes = [
    [2, 3],
    [3, 1],
    [1, 4],
  ] as const;
  const packed = filledProblem({ queries: 6, keys: 8, dim: 2 }, () => 2 * random());
  const first = [0, 3, 4];
  const of = (query: number) => (query < 2 ? 0 : query < 5 ? 1 : 2);
  const stretch =
    (from: (sequence: number) => readonly [begin: number, end: number]) =>
    ({ query, key }: At) => {
      const [begin, end] = from(of(query));
      return key >= begin && key < end;
    };
  const moved = (by: number) =>
    stretch((i) => {
      const begin = within(first[i] + by, 8);
      return [begin, begin + sizes[i][1]];
    });
  const masks = {
    'sequence-shifted: the keys of a sequence are read one behind their place': moved(1),
    'sequence-shifted: the keys of a sequence are read one before their place': moved(-1),
    'sequence-long: a sequence has one key of the next': stretch((i) => [
      first[i],
      first[i] + sizes[i][1] + 1,
    ]),
    'sequence-short: the last key of a sequence is left out': stretch((i) => [
      first[i],
      first[i] + sizes[i][1] - 1,
    ]),
    "sequence-neighbour: a sequence reads the next one's keys": stretch((i) => {
      const begin = first[Math.min(i + 1, 2)];
      return [begin, begin + sizes[i][1]];
    }),
    "sequence-first: a sequence reads the first one's keys": stretch((i) => [0, sizes[i][1]]),
    'sequences-ignored: every query sees the keys of all sequences': () => true,
  };
  const problem = { ...packed, sequences: sequencesOf(sizes) };

  it('predict keys of other sequences', () => {
    const context = contextOf(problem, new Textbook(problem).rows());
    const found = hypothesesOf(visibilityHypotheses, context);
    expect([...found.keys()].sort()).toEqual(Object.keys(masks).sort());
    for (const [name, fault] of Object.entries(ofMasks(masks)))
      expectPredicts(found.get(name)!, context, (row) => new Textbook(problem).row(row, fault));
  });

  it('say nothing of keys that a mask or bias does not reach', () => {
    const falling = sequencesOf([
      [2, 4],
      [3, 3],
      [1, 1],
    ]);
    const names = (length: number) => {
      const mask = { shape: [1, length], data: new Uint8Array(length).fill(1) };
      const masked = { ...packed, sequences: falling, mask };
      const context = contextOf(masked, new Textbook(packed).rows());
      return [...hypothesesOf(visibilityHypotheses, context).keys()].map((name) =>
        name.replace(/:.*/, ''),
      );
    };
    expect(names(4)).not.toContain('sequence-long');
    expect(names(4)).toContain('sequence-short');
    expect(names(4)).not.toContain('sequences-ignored');
    // One element for all keys reaches them all.
    expect(names(1)).toContain('sequence-long');
    expect(names(1)).toContain('sequences-ignored');
  });

  it('are about a first and a last sequence only where there are two', () => {
    const one = { ...packed, sequences: sequencesOf([[6, 8]]) };
    const names = hypothesesOf(visibilityHypotheses, contextOf(one, new Textbook(one).rows()));
    expect([...names.values()].map(({ id }) => id).sort()).toEqual(
      ['sequence-long', 'sequence-shifted', 'sequence-shifted', 'sequence-short'].sort(),
    );
  });
});
