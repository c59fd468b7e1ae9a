import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pageHypotheses } from '../../../src/audit/diagnosis/hypotheses/page-faults.js';
import type { Hypothesis } from '../../../src/audit/diagnosis/hypothesis.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { cacheName, storeProblem, type Tensor } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, sequencesOf } from '../../setup/problems.js';
import { contextOf, contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type At, type Fault } from './textbook.js';

const heads = 3;
const dim = 3;
type Sizes = readonly (readonly [queries: number, keys: number])[];

/** How keys lie in pages. */
interface Layout {
  readonly pageSize: number;
  readonly headsFirst: boolean;
  readonly joined: boolean;
  readonly spare: number;
  readonly seed: number;
  /** The value of slots that no sequence uses. */
  readonly fill?: number;
}

/** Whole numbers below `count` in an order by chance. */
function shuffled(count: number, random: () => number): number[] {
  const keyed = Array.from({ length: count }, (_, one) => ({ one, at: random() }));
  return keyed.sort((a, b) => a.at - b.at).map(({ one }) => one);
}

/** Sequences whose keys lie in pages, and what a kernel reads there: by page, slot and head of the cache. */
class Cache {
  readonly problem;
  readonly book: Textbook;
  readonly #layout: Layout;
  readonly #sizes: Sizes;
  readonly #table: readonly number[];
  readonly #columns: number;
  readonly pages: number;
  readonly #values: Readonly<Record<'k' | 'v', Float64Array>>;

  constructor(sizes: Sizes, layout: Layout) {
    const { pageSize, headsFirst, joined, spare, seed, fill = 0.25 } = layout;
    const random = pseudorandom(seed);
    const total = (side: 0 | 1) => sizes.reduce((sum, one) => sum + one[side], 0);
    const frame = { heads, queries: total(0), keys: total(1), dim, format: 'fp32' } as const;
    const settings = { causal: true, scale: 0.7, sequences: sequencesOf(sizes) };
    const plain = filledProblem(frame, () => 3 * random(), settings);
    const arrange = (pages: number) => shuffled(pages, random);
    this.problem = storeProblem(
      plain,
      {
        queries: { kind: 'packed' },
        keys: { kind: 'paged', pageSize, headsFirst, joined, spare, arrange },
      },
      fill,
    );
    this.book = new Textbook(this.problem);
    this.#layout = layout;
    this.#sizes = sizes;
    const { tensors } = this.problem.stored;
    // One element that is no number is enough.
    for (const { data } of Object.values(tensors))
      data.forEach((x, i) => (data[i] = Number.isNaN(x) && i % dim !== 1 ? 0.25 : x));
    const table = tensors['block_table'];
    this.#table = [...(table.data as Int32Array)];
    this.#columns = table.shape[1];
    const both = tensors[cacheName] as Tensor | undefined;
    const of = (which: 'k' | 'v') => decodeTensor(both ?? (tensors[which] as Tensor));
    this.#values = { k: of('k'), v: of('v') };
    this.pages = (both ?? (tensors['k'] as Tensor)).shape[0];
  }

  /** The sequence of a key, and the key's number in it. */
  own(key: number): { readonly sequence: number; readonly j: number } {
    let j = key;
    let sequence = 0;
    while (j >= this.#sizes[sequence][1]) j -= this.#sizes[sequence++][1];
    return { sequence, j };
  }

  count(sequence: number): number {
    return Math.ceil((this.#sizes[sequence]?.[1] ?? 0) / this.#layout.pageSize);
  }

  /** The page of the block table; undefined beyond those of a sequence. */
  page(sequence: number, column: number): number | undefined {
    return column >= 0 && column < this.count(sequence)
      ? this.#table[sequence * this.#columns + column]
      : undefined;
  }

  has(sequence: number): boolean {
    return this.#sizes[sequence] !== undefined;
  }

  /** One number of K or V by the layout that `headsFirst` says, which may be the wrong one; NaN beyond the cache. */
  read(which: 'k' | 'v', at: Place, t: number, headsFirst = this.#layout.headsFirst): number {
    const { page, slot, head } = at;
    const { pageSize, joined } = this.#layout;
    const block = joined ? 2 * page + (which === 'k' ? 0 : 1) : page;
    const row = headsFirst ? head * pageSize + slot : slot * heads + head;
    return this.#values[which][(block * heads * pageSize + row) * dim + t] ?? NaN;
  }

  /** What a query sees: its own sequence's keys up to its own, aligned at the end. */
  sees({ query, key }: Pick<At, 'query' | 'key'>): boolean {
    let i = query;
    let of = 0;
    while (i >= this.#sizes[of][0]) i -= this.#sizes[of++][0];
    const { sequence, j } = this.own(key);
    return sequence === of && j <= i + this.#sizes[of][1] - this.#sizes[of][0];
  }

  /** A kernel that reads each key at a place of its own choice; null for the right one. */
  fault(
    place: (key: { sequence: number; j: number; page: number; slot: number }) => PageAndSlot,
    { only, headsFirst }: { only?: 'k' | 'v'; headsFirst?: boolean } = {},
  ): Fault {
    const { pageSize } = this.#layout;
    const reader = (which: 'k' | 'v') => (at: At, t: number) => {
      const { sequence, j } = this.own(at.key);
      const right = {
        page: this.page(sequence, Math.floor(j / pageSize))!,
        slot: j % pageSize,
      };
      const read = only === undefined || only === which;
      const found = read ? place({ sequence, j, ...right }) : right;
      const layout = read ? headsFirst : undefined;
      return this.read(which, { ...found, head: at.kvHead }, t, layout);
    };
    return { sees: (at) => this.sees(at), k: reader('k'), v: reader('v') };
  }
}

interface PageAndSlot {
  readonly page: number;
  readonly slot: number;
}
type Place = PageAndSlot & { readonly head: number };

/** The textbook's reading of every fault of all pages, by the hypothesis that says it. */
function faultsOfAllPages(cache: Cache, pageSize: number, headsFirst: boolean) {
  const faults: Record<string, Fault> = {
    'block-table-ignored: the pages are read in the order of the memory: the block table is ignored':
      cache.fault(({ j, slot }) => ({ page: Math.floor(j / pageSize), slot })),
  };
  for (const [by, which, end] of [
    [1, 'behind', 'last'],
    [-1, 'before', 'first'],
  ] as const) {
    const shifted = (atEnd: (sequence: number, own: number) => number) =>
      cache.fault(({ sequence, j, page, slot }) => ({
        page: cache.page(sequence, Math.floor(j / pageSize) + by) ?? atEnd(sequence, page),
        slot,
      }));
    const name = `block-table-shifted: the block table is shifted by one: each page of a sequence is the one ${which} it, the ${end} one`;
    faults[`${name} itself`] = shifted((_, own) => own);
    faults[`${name} page 0 of the cache`] = shifted(() => 0);
    // One long list of pages.
    faults[`${name} that of the sequence ${which}`] = shifted((sequence, own) => {
      const other = sequence + by;
      return cache.page(other, by > 0 ? 0 : cache.count(other) - 1) ?? own;
    });
    faults[
      `block-table-shifted: the block table is off by one: each page is the one ${which} it in the cache`
    ] = cache.fault(({ page, slot }) => ({ page: page + by, slot }));
    faults[`page-of-other-sequence: a sequence has the pages of the one ${which} it`] = cache.fault(
      ({ sequence, j, page, slot }) => ({
        page: cache.page(sequence + by, Math.floor(j / pageSize)) ?? page,
        slot,
      }),
    );
  }
  for (const size of [16, 32, 64, 128])
    if (size < pageSize)
      faults[
        `page-size: places within a page are counted modulo ${size}, not modulo its ${pageSize} slots`
      ] = cache.fault(({ j, page }) => ({ page, slot: j % size }));
  const [slots, ofHeads] = [
    '[pages, page size, heads, dim]',
    '[pages, heads, page size, dim]',
  ] as const;
  if (pageSize > 1)
    faults[
      `page-axes-exchanged: page size and heads of the cache are exchanged: ${headsFirst ? `${ofHeads} is read as ${slots}` : `${slots} is read as ${ofHeads}`}`
    ] = cache.fault(({ page, slot }) => ({ page, slot }), { headsFirst: !headsFirst });
  return faults;
}

const layout = fc.record({
  pageSize: fc.constantFrom(1, 2, 3, 4, 20),
  headsFirst: fc.boolean(),
  joined: fc.boolean(),
  spare: fc.nat(2),
  seed: fc.integer({ min: 1, max: 2 ** 20 }),
  fill: fc.constantFrom(0.25, NaN),
});
const someSizes = fc.array(
  fc.tuple(fc.integer({ min: 1, max: 2 }), fc.integer({ min: 3, max: 7 })),
  {
    minLength: 1,
    maxLength: 3,
  },
);

const isWholePages = ({ id }: Hypothesis) => id !== 'wrong-page';

describe('faults of all pages of a cache', () => {
  it('predict what a kernel reads at the wrong page, slot or head, and nothing of what is no number', () => {
    fc.assert(
      fc.property(someSizes, layout, (short, of) => {
        // Of long pages, more than one.
        const sizes = short.map(([rows, keys]) => [rows, keys + of.pageSize] as const);
        const cache = new Cache(sizes, of);
        const context = contextOfFault(cache.problem, { sees: (at) => cache.sees(at) });
        const found = [...hypothesesOf(pageHypotheses, context)].filter(([, one]) =>
          isWholePages(one),
        );
        const faults = faultsOfAllPages(cache, of.pageSize, of.headsFirst);
        expect(found.map(([name]) => name).sort()).toEqual(Object.keys(faults).sort());
        for (const [name, hypothesis] of found) {
          expect(hypothesis.local ?? false).toBe(false);
          const rows = context.sample.filter((row) => {
            const { out } = cache.book.row(row.row, faults[name]);
            const isRead = out.every((x) => Number.isFinite(x));
            if (!isRead) expect(hypothesis.predict(row)).toBe(null);
            return isRead;
          });
          expectPredicts(
            hypothesis,
            { ...context, sample: rows },
            (row) => cache.book.row(row, faults[name]),
            1e-6,
          );
        }
      }),
      { numRuns: 10 },
    );
  });

  it('are of caches in pages alone', () => {
    const { problem } = new Cache([[1, 4]], { ...plainLayout, seed: 3 });
    const { stored: _stored, ...rest } = problem;
    void _stored;
    const packed = storeProblem(rest, { queries: { kind: 'packed' }, keys: { kind: 'packed' } });
    for (const other of [rest, packed])
      expect([...pageHypotheses(contextOfFault(other))]).toEqual([]);
    const forgotten = { ...problem, stored: { ...problem.stored, tensors: null } };
    expect([...pageHypotheses(contextOfFault(forgotten))]).toEqual([]);
    expect([...pageHypotheses(contextOfFault(problem))]).not.toEqual([]);
  });

  it('leave what a kernel gives where no key is read elsewhere', () => {
    const cache = new Cache(
      [
        [1, 4],
        [1, 4],
      ],
      { ...plainLayout, seed: 6 },
    );
    const context = contextOfFault(cache.problem);
    const found = hypothesesOf(pageHypotheses, context).get(
      'page-of-other-sequence: a sequence has the pages of the one behind it',
    )!;
    for (const row of context.sample)
      expect(found.predict(row) === row.correct).toBe(row.query === 1);
  });
});

const plainLayout = { pageSize: 2, headsFirst: false, joined: false, spare: 1 } as const;

/** What is said of single pages, of a kernel's output. */
function wrongPages(cache: Cache, out: Float64Array, isDamaged: (row: number) => boolean) {
  const context = contextOf(cache.problem, { out, lse: null }, { isDamaged });
  const found = [...pageHypotheses(context)].filter((one) => !isWholePages(one));
  return { context, found };
}

describe('one page that is another', () => {
  /** A cache, and a page of one of its sequences that is read from another place. */
  const planted = fc
    .record({
      seed: fc.integer({ min: 1, max: 2 ** 20 }),
      headsFirst: fc.boolean(),
      joined: fc.boolean(),
      only: fc.constantFrom(undefined, 'k' as const, 'v' as const),
      sequence: fc.nat(1),
      column: fc.nat(1),
      step: fc.integer({ min: 1, max: 5 }),
    })
    .map(({ sequence, column, step, only, ...of }) => {
      const cache = new Cache(
        [
          [2, 6],
          [2, 5],
        ],
        { ...plainLayout, ...of },
      );
      const page = (cache.page(sequence, column)! + step) % cache.pages;
      const fault = cache.fault(
        (key) => ({
          page: key.sequence === sequence && Math.floor(key.j / 2) === column ? page : key.page,
          slot: key.slot,
        }),
        only === undefined ? {} : { only },
      );
      return { cache, fault, page, only, sequence, column };
    });

  it('is found, for both, K or V alone, in the sequence that has it', () => {
    fc.assert(
      fc.property(planted, ({ cache, fault, page, only, sequence, column }) => {
        // The last of the sequence's queries sees all of its keys.
        const { out } = cache.book.rows(fault);
        const isStruck = (row: number) => row % 4 === 2 * sequence + 1;
        const { context, found } = wrongPages(cache, out, isStruck);
        const alone = only === undefined ? '' : `, for ${only.toUpperCase()} alone`;
        expect(found.map((one) => one.statement)).toEqual([
          `page ${column} of sequence ${sequence} is page ${page} of the cache${alone}`,
        ]);
        expect(found[0]).toMatchObject({ local: true, adjusted: true, technique: null });
        expectPredicts(found[0], context, (row) => cache.book.row(row, fault), 1e-6);
      }),
      { numRuns: 12 },
    );
  });

  it('is told for each of four sequences that err, and for none of five', () => {
    const sizes = Array.from({ length: 5 }, () => [1, 4] as const);
    const cache = new Cache(sizes, { ...plainLayout, seed: 5 });
    const fault = cache.fault(({ j, page, slot }) => ({
      page: j < 2 ? (page + 1) % cache.pages : page,
      slot,
    }));
    const { out } = cache.book.rows(fault);
    const told = (count: number) =>
      wrongPages(cache, out, (row) => row % 5 < count).found.map(({ statement }) => statement);
    expect(told(4)).toEqual(
      [0, 1, 2, 3].map(
        (sequence) =>
          `page 0 of sequence ${sequence} is page ${(cache.page(sequence, 0)! + 1) % cache.pages} of the cache`,
      ),
    );
    expect(told(5)).toEqual([]);
  });

  it('must explain three quarters of a row’s squared error', () => {
    const cache = new Cache([[1, 4]], { ...plainLayout, seed: 8 });
    const fault = cache.fault(({ j, page, slot }) => ({
      page: j < 2 ? (page + 1) % cache.pages : page,
      slot,
    }));
    const right = cache.book.rows({ sees: (at) => cache.sees(at) }).out;
    const wrong = cache.book.rows(fault).out;
    // Of an error that is `a` times the fault's, (a − 1)² / a² is left: a quarter for 2.
    const told = (a: number) =>
      wrongPages(
        cache,
        right.map((x, i) => x + a * (wrong[i] - x)),
        (row) => row === 0,
      ).found.length;
    expect([0.5, 1, 1.99, 2.01, 3].map(told)).toEqual([0, 1, 1, 0, 0]);
  });

  it('is looked for among as many as 4096 pairs of pages', () => {
    const told = (pages: number, spare: number) => {
      const cache = new Cache([[1, pages]], { ...plainLayout, pageSize: 1, spare, seed: 2 });
      const fault = cache.fault(({ j, page, slot }) => ({
        page: j === 1 ? (page + 1) % cache.pages : page,
        slot,
      }));
      return wrongPages(cache, cache.book.rows(fault).out, (row) => row === 0).found.length;
    };
    expect(told(8, 504)).toBe(1);
    expect(told(8, 505)).toBe(0);
  });
});
