import { describe, expect, it } from 'vitest';
import { chooseRows, defaultRows, type RowSample } from '../../../src/audit/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

function zeros(shape: readonly number[]): Tensor {
  const count = shape.reduce((product, size) => product * size, 1);
  return { format: 'bf16', shape, data: new Uint16Array(count) };
}

/** A problem of which only the shape and the mask matter. */
function shaped(heads: number, queries: number, features: Partial<Problem> = {}): Problem {
  const [q, k, v] = [queries, queries, queries].map((rows) => zeros([1, heads, rows, 1]));
  return { q, k, v, scale: 1, causal: false, window: null, softcap: null, ...features };
}

function choose(problem: Problem, rows: number, seed: number): RowSample {
  const sample = chooseRows(problem, problemShape(problem), { rows, seed });
  if (sample === null) throw new Error('all rows are chosen');
  return sample;
}

const oddsOf = ({ odds }: RowSample, fault: RegExp) => odds.find((one) => fault.test(one.fault))!;

/** Rows of heads as sets. */
function chosen({ selection }: RowSample, heads: number): Set<number>[] {
  const ofHead = selection.queries.length / heads;
  return Array.from(
    { length: heads },
    (_, head) => new Set(selection.queries.subarray(head * ofHead, (head + 1) * ofHead)),
  );
}

describe('a sample of rows', () => {
  it('has the same rows for a seed, as many of each head, no row twice, in order', () => {
    const problem = shaped(3, 1000, { causal: true });
    const sample = choose(problem, 90, 7);
    expect(choose(problem, 90, 7)).toEqual(sample);
    expect(choose(problem, 90, 8).selection).not.toEqual(sample.selection);
    expect(sample.rows).toBe(90);
    expect(sample.of).toBe(3000);
    expect(sample.edges + sample.random).toBe(90);
    for (const head of [0, 1, 2]) {
      const rows = [...sample.selection.queries.subarray(head * 30, (head + 1) * 30)];
      expect([...new Set(rows)].sort((a, b) => a - b)).toEqual(rows);
      expect(rows[0]).toBe(0);
      expect(rows.at(-1)).toBe(999);
    }
  });

  it('has the first and last rows of tiles where these are a quarter of it at most', () => {
    const [rows] = chosen(choose(shaped(1, 1024), 128, 1), 1);
    for (let first = 0; first < 1024; first += 128) {
      expect(rows).toContain(first);
      expect(rows).toContain(first + 127);
    }
  });

  it('has the rows where what is seen changes shape', () => {
    const segments = Int32Array.from({ length: 640 }, (_, i) => (i < 101 ? 1 : i < 333 ? 2 : 3));
    const integers = { shape: [640], data: segments };
    const documents = shaped(2, 640, { segments: { queries: integers, keys: integers } });
    for (const rows of chosen(choose(documents, 200, 3), 2))
      for (const edge of [100, 101, 332, 333]) expect(rows).toContain(edge);
    // Of 50 keys for 640 queries the first query that sees one is 590.
    const causal = { ...shaped(1, 640, { causal: true }), k: zeros([1, 1, 50, 1]) };
    const [seen] = chosen(choose({ ...causal, v: zeros([1, 1, 50, 1]) }, 100, 3), 1);
    expect(seen).toContain(589);
    expect(seen).toContain(590);
    const window = shaped(1, 640, { causal: true, window: { left: 210, right: -1 } });
    expect(chosen(choose(window, 100, 3), 1)[0]).toContain(210);
    const sequences = [
      { firstQuery: 0, queries: 77, firstKey: 0, keys: 77 },
      { firstQuery: 77, queries: 563, firstKey: 77, keys: 563 },
    ];
    const [packed] = chosen(choose(shaped(1, 640, { causal: true, sequences }), 100, 3), 1);
    expect(packed).toContain(76);
    expect(packed).toContain(77);
  });

  it('is at least half random, however many edges there are', () => {
    const data = Uint8Array.from({ length: 512 * 512 }, (_, i) => (i * 7919) % 3);
    const scattered = shaped(1, 512, { mask: { shape: [512, 512], data } });
    const sample = choose(scattered, 64, 5);
    expect(sample.random).toBeGreaterThanOrEqual(31);
  });

  it('is all rows, which is no sample, where as many are asked for; and refuses fewer than heads', () => {
    const problem = shaped(4, 10);
    const shape = problemShape(problem);
    expect(chooseRows(problem, shape, { rows: 40, seed: 1 })).toBeNull();
    expect(() => chooseRows(problem, shape, { rows: 3, seed: 1 })).toThrow(/3 rows are fewer/);
  });

  it('is the default beyond 10^12 multiply-adds, with 4096 rows at least', () => {
    const of = (heads: number, length: number) => {
      const shape = {
        batch: 1,
        heads,
        kvHeads: heads,
        groupSize: 1,
        queries: length,
        keys: length,
      };
      return defaultRows(shaped(1, 8), { ...shape, qkDim: 128, vDim: 128 });
    };
    expect(of(16, 4096)).toBeNull();
    expect(of(32, 131072)).toBe(4096);
    expect(of(1, 2 ** 20)).toBe(4096);
    expect(of(32, 16384)).toBe(32768);
  });
});

/** How often a fault in some rows of some heads is seen, over seeds; the rows are none of those chosen for a place. */
function seenShare(problem: Problem, rows: number, faulty: (head: number) => ReadonlySet<number>) {
  const heads = problem.q.shape[1];
  const trials = 1000;
  const first = testSeed % 1e6;
  let seen = 0;
  for (let trial = 0; trial < trials; trial++) {
    const sample = chosen(choose(problem, rows, first + trial), heads);
    if (sample.some((own, head) => [...own].some((row) => faulty(head).has(row)))) seen++;
  }
  return { share: seen / trials, error: 5 * Math.sqrt(0.25 / trials) };
}

describe('the stated probability that a fault is seen', () => {
  // The middle rows of tiles are drawn at random alone.
  const inside = (count: number, step: number) =>
    new Set(Array.from({ length: count }, (_, i) => 3 + i * step));

  it('is that of a fault in rows of one head', () => {
    const problem = shaped(2, 512);
    const stated = oddsOf(choose(problem, 40, 1), /^one row/).seen;
    const one = seenShare(problem, 40, (head) => (head === 1 ? inside(1, 1) : new Set()));
    expect(Math.abs(one.share - stated)).toBeLessThan(one.error);
    expect(stated).toBeGreaterThan(0.01);
  });

  inTurn('is that of a fault in 1 % of the rows, spread over heads', () => {
    const problem = shaped(2, 512);
    const fault = oddsOf(choose(problem, 120, 1), /^1 % of the rows/);
    expect(fault.rows).toBe(10);
    const spread = seenShare(problem, 120, () => inside(5, 5));
    expect(Math.abs(spread.share - fault.seen)).toBeLessThan(spread.error);
    // No arrangement is seen less.
    const together = seenShare(problem, 120, (head) => (head === 0 ? inside(10, 5) : new Set()));
    expect(together.share).toBeGreaterThan(fault.seen - together.error);
  });

  it('is that of a tile at least, and of a whole head 1', () => {
    const problem = shaped(2, 512);
    const sample = choose(problem, 10, 1);
    const fault = oddsOf(sample, /^128 rows of one head/);
    const tile = new Set(Array.from({ length: 128 }, (_, i) => 100 + i));
    const found = seenShare(problem, 10, (head) => (head === 1 ? tile : new Set()));
    expect(found.share).toBeGreaterThan(fault.seen - found.error);
    expect(fault.seen).toBeLessThan(1);
    expect(oddsOf(sample, /^a whole head/).seen).toBe(1);
  });
});
