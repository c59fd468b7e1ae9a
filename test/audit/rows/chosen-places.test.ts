import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseKeys, keysOfHead } from '../../../src/audit/rows/key-sample.js';
import { createRowLocator } from '../../../src/audit/rows/locate-rows.js';
import { maskEdges } from '../../../src/audit/rows/mask-edges.js';
import { placeOfKeys, rangesOf } from '../../../src/audit/rows/place.js';
import { chooseRows } from '../../../src/audit/rows/row-sample.js';
import { problemMask, problemShape, type Problem } from '../../../src/problem/index.js';
import { filledProblem, sequencesOf, type ProblemFrame } from '../../setup/problems.js';

const problemOf = (frame: Partial<ProblemFrame>, changes: Partial<Problem> = {}) =>
  filledProblem({ queries: 2, keys: 2, dim: 1, ...frame }, () => 0.5, changes);
const ascending = (list: ArrayLike<number>) =>
  Array.from(list).every((x, i) => i === 0 || x > list[i - 1]);

describe('a sample of keys', () => {
  it('has as many of each head, its ends, edges for half of it at most, and random ones', () => {
    const sizes = fc.record({
      heads: fc.integer({ min: 1, max: 3 }),
      keys: fc.integer({ min: 2, max: 600 }),
    });
    fc.assert(
      fc.property(
        sizes,
        fc.integer({ min: 1, max: 2000 }),
        fc.nat(9),
        ({ heads, keys }, count, seed) => {
          const problem = problemOf({ batch: 2, heads, keys });
          const shape = problemShape(problem);
          const request = { keys: count, seed };
          if (count >= 2 * heads * keys) {
            expect(chooseKeys(problem, shape, request)).toBeNull();
            return;
          }
          if (count < 2 * heads) {
            expect(() => chooseKeys(problem, shape, request)).toThrow();
            return;
          }
          const sample = chooseKeys(problem, shape, request);
          const ofHead = Math.floor(count / (2 * heads));
          expect(sample).toMatchObject({ seed, keys: 2 * heads * ofHead, of: 2 * heads * keys });
          expect(sample!.edges + sample!.random).toBe(sample!.keys);
          let edges = 0;
          for (let head = 0; head < 2 * heads; head++) {
            const own = keysOfHead(sample, shape, head)!;
            expect(own.length).toBe(ofHead);
            expect(ascending(own)).toBe(true);
            expect(own[0] >= 0 && own[ofHead - 1] < keys).toBe(true);
            if (ofHead > 2) expect([own[0], own[ofHead - 1]]).toEqual([0, keys - 1]);
            const tiles = [...Array(Math.ceil(keys / 128)).keys()];
            const atEdges = new Set(
              tiles.flatMap((tile) => [128 * tile, Math.min(128 * tile + 128, keys) - 1]),
            );
            const ends = ofHead > 2 ? new Set([0, keys - 1]).size : 0;
            const others = [...atEdges].filter((key) => ends === 0 || (key > 0 && key < keys - 1));
            const room = Math.max(0, Math.floor(ofHead / 2) - ends);
            edges += ends + Math.min(room, others.length);
            const chosen = others.filter((key) => own.includes(key)).length;
            expect(chosen).toBeGreaterThanOrEqual(Math.min(room, others.length));
          }
          expect(sample!.edges).toBe(edges);
          expect(chooseKeys(problem, shape, request)).toEqual(sample);
        },
      ),
      { numRuns: 60 },
    );
    expect(keysOfHead(null, problemShape(problemOf({})), 0)).toBeNull();
  });

  it('has the ends of packed sequences', () => {
    const sequences = sequencesOf([
      [1, 3],
      [0, 0],
      [1, 40],
      [2, 21],
    ]);
    const problem = problemOf({ queries: 4, keys: 64 }, { sequences });
    const { selection } = chooseKeys(problem, problemShape(problem), { keys: 12, seed: 1 })!;
    for (const key of [0, 2, 3, 42, 43, 63]) expect([...selection]).toContain(key);
  });
});

describe('the edges of a mask', () => {
  /** The queries whose ranges do not go on from those of the query before as these did, by numbers of keys. */
  function plainEdges(problem: Problem, head: number): number[] {
    const shape = problemShape(problem);
    const { ranges } = problemMask(problem, shape);
    const line = (query: number) => {
      const seen = query < 0 ? [] : ranges(head, query);
      return seen.length === 0 ? [0, 0, 0] : [seen.length, seen[0].begin, seen.at(-1)!.end];
    };
    const { queries } = shape;
    return [...Array(queries).keys()].filter((query) => {
      if (query === 0 || query === queries - 1) return true;
      const [a, b, c] = [line(query - 1), line(query), line(query + 1)];
      return [0, 1, 2].some((i) => b[i] - a[i] !== c[i] - b[i]);
    });
  }

  it.each([
    [{ causal: true }],
    [{ window: { left: 3, right: 1 } }],
    [{ causal: true, window: { left: 4, right: -1 } }],
    [
      {
        sequences: sequencesOf([
          [5, 9],
          [7, 11],
        ]),
        causal: true,
      },
    ],
    [
      {
        segments: {
          queries: { shape: [12], data: Int32Array.from([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2]) },
          keys: { shape: [20], data: Int32Array.from({ length: 20 }, (_, i) => Math.floor(i / 7)) },
        },
      },
    ],
    [
      {
        mask: {
          shape: [2, 12, 20],
          data: Uint8Array.from({ length: 480 }, (_, i) =>
            (i * i) % 7 > (i < 240 ? 2 : 4) ? 1 : 0,
          ),
        },
      },
    ],
  ] as readonly (readonly [Partial<Problem>])[])(
    'are where what is seen changes otherwise: %j',
    (changes) => {
      const problem = problemOf({ heads: 2, queries: 12, keys: 20 }, changes);
      const edges = maskEdges(problem, problemShape(problem));
      for (const head of [0, 1]) expect([...edges(head)]).toEqual(plainEdges(problem, head));
    },
  );

  it('are those of each batch entry, whose documents differ', () => {
    const data = Int32Array.from([0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1]);
    const segments = { queries: { shape: [2, 6], data }, keys: { shape: [2, 6], data } };
    const problem = problemOf({ batch: 2, heads: 2, queries: 6, keys: 6 }, { segments });
    const edges = maskEdges(problem, problemShape(problem));
    for (const head of [0, 1, 2, 3]) expect([...edges(head)]).toEqual(plainEdges(problem, head));
    expect(edges(0)).not.toEqual(edges(2));
  });

  it('and of tiles are a quarter of the rows of a sample each, at most', () => {
    const problem = problemOf({ heads: 2, queries: 400, keys: 400 }, { causal: true });
    const shape = problemShape(problem);
    for (const rows of [2, 6, 30, 90, 799]) {
      const sample = chooseRows(problem, shape, { rows, seed: 3 })!;
      const ofHead = rows >> 1;
      expect(sample).toMatchObject({ rows: 2 * ofHead, of: 800, seed: 3 });
      expect(sample.selection.of).toBe(400);
      const ends = ofHead > 2 ? 2 : 0;
      // Of the tiles of 128 queries; the causal mask has no edge but the ends.
      const tiles = [127, 128, 255, 256, 383, 384, ...(ends === 0 ? [0, 399] : [])];
      const atMask = ends === 0 ? Math.min(2, ofHead >> 2) : 0;
      const atTiles = Math.min(tiles.length, ofHead >> 2);
      expect(sample.edges).toBe(2 * (ends + atMask + atTiles));
      for (const first of [0, ofHead]) {
        const own = sample.selection.queries.subarray(first, first + ofHead);
        expect(ascending(own)).toBe(true);
        if (ends > 0) expect([own[0], own[ofHead - 1]]).toEqual([0, 399]);
        expect(tiles.filter((query) => own.includes(query)).length).toBeGreaterThanOrEqual(atTiles);
      }
      expect(sample.random).toBe(2 * ofHead - sample.edges);
    }
    expect(chooseRows(problem, shape, { rows: 800, seed: 3 })).toBeNull();
    expect(() => chooseRows(problem, shape, { rows: 1, seed: 3 })).toThrow();
  });
});

describe('places', () => {
  it('are as few ranges as members make', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40)), (members) => {
        const ranges = rangesOf(members);
        const covered = ranges.flatMap(({ first, last }) =>
          Array.from({ length: last - first + 1 }, (_, i) => first + i),
        );
        expect(covered).toEqual([...new Set(members)].sort((a, b) => a - b));
        expect(ranges.every(({ first }, i) => i === 0 || first > ranges[i - 1].last + 1)).toBe(
          true,
        );
      }),
    );
  });

  it('of keys are counted within their sequence and head', () => {
    const problem = problemOf({ batch: 2, heads: 4, kvHeads: 2, keys: 10 });
    const shape = problemShape(problem);
    const all = Array.from({ length: 40 }, (_, i) => i);
    expect(placeOfKeys(all, { shape })).toMatchObject({
      sequences: null,
      kvHeads: null,
      maxima: null,
      keys: null,
      rows: null,
    });
    const some = all.filter((flat) => flat % 10 > 6 && Math.floor(flat / 10) % 2 === 1);
    expect(placeOfKeys(some, { shape })).toMatchObject({
      sequences: null,
      kvHeads: { ranges: [{ first: 1, last: 1 }], of: 2 },
      keys: { ranges: [{ first: 7, last: 9 }], of: 10 },
      rows: null,
    });
    expect(placeOfKeys([23], { shape })).toMatchObject({
      sequences: { ranges: [{ first: 1, last: 1 }], of: 2 },
      kvHeads: { ranges: [{ first: 0, last: 0 }] },
      keys: { ranges: [{ first: 3, last: 3 }] },
    });
    expect(placeOfKeys([1, 12], { shape })).toMatchObject({
      keys: null,
      rows: { count: 2, of: 20, sampled: false },
    });
    const sequences = sequencesOf([
      [1, 4],
      [1, 6],
    ]);
    const packed = { shape: { ...shape, batch: 1 }, sequences };
    expect(placeOfKeys([5, 15], packed)).toMatchObject({
      sequences: { ranges: [{ first: 1, last: 1 }], of: 2 },
      kvHeads: null,
      maxima: null,
      keys: { ranges: [{ first: 1, last: 1 }], of: 6 },
    });
  });

  it('of a sample, and of packed sequences, are those of the whole problem', () => {
    const queries = Int32Array.from([0, 3, 5, 1, 4, 5]);
    const shape = problemShape(problemOf({ heads: 2, queries: 3 }));
    expect(createRowLocator({}, shape)).toBeNull();
    const sampled = createRowLocator({ rows: { queries, of: 6 } }, shape)!;
    expect(sampled.place({ batch: 0, head: 1, query: 1 })).toEqual({ batch: 0, head: 1, query: 4 });
    expect(sampled.rows({ head: 1, firstRow: 0, rows: 2 })).toMatchObject({
      firstRow: 1,
      lastRow: 4,
    });
    expect(sampled.rows({ head: 0, firstRow: 1, rows: 9, lastRow: 2 })).toMatchObject({
      firstRow: 3,
      lastRow: 5,
    });
    const sequences = sequencesOf([
      [2, 1],
      [4, 1],
    ]);
    const both = createRowLocator({ rows: { queries, of: 6 }, sequences }, shape)!;
    expect(both.place({ batch: 0, head: 0, query: 1 })).toMatchObject({ sequence: 1, query: 1 });
    const packed = createRowLocator(
      {
        sequences: sequencesOf([
          [1, 1],
          [2, 1],
        ]),
      },
      shape,
    )!;
    expect(packed.place({ batch: 0, head: 1, query: 2 })).toMatchObject({
      head: 1,
      sequence: 1,
      query: 1,
    });
    expect(packed.rows({ head: 1, firstRow: 0, rows: 3 })).toMatchObject({
      firstRow: 0,
      lastRow: 2,
    });
  });
});
