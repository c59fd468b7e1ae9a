import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  axisOf,
  describePlace,
  everywhere,
  placeOfKeys,
  placeOfRows,
  type PlaceAxis,
} from '../../../src/audit/rows/index.js';
import type { ProblemShape, Sequence } from '../../../src/problem/index.js';
import { sequencesOf } from '../../setup/problems.js';

const usual: ProblemShape = {
  batch: 2,
  heads: 4,
  kvHeads: 2,
  groupSize: 2,
  queries: 64,
  keys: 96,
  qkDim: 8,
  vDim: 8,
};

/** Rows of [batch, heads, queries] that a function picks. */
function rowsWhere(
  picks: (sequence: number, head: number, query: number) => boolean,
  { batch, heads, queries }: ProblemShape = usual,
): number[] {
  return Array.from({ length: batch * heads * queries }, (_, row) => row).filter((row) => {
    const head = Math.floor(row / queries);
    return picks(Math.floor(head / heads), head % heads, row % queries);
  });
}

const textOf = (picks: Parameters<typeof rowsWhere>[0]) =>
  describePlace(placeOfRows(rowsWhere(picks), { shape: usual }));

describe('a place in words', () => {
  it.each([
    ['everywhere', () => true],
    ['sequence 0', (s) => s === 0],
    ['head 2', (_, h) => h === 2],
    ['sequence 0, heads 2 to 3', (s, h) => s === 0 && h > 1],
    ['heads 0 and 2', (_, h) => h % 2 === 0],
    ['head 1, query 5, 2 of 128 rows', (_, h, q) => h === 1 && q === 5],
    ['queries 0 to 15, 128 of 512 rows', (_s, _h, q) => q < 16],
    ['queries 1 and 3 of each 8, 128 of 512 rows', (_s, _h, q) => q % 8 === 1 || q % 8 === 3],
    [
      'sequence 1, heads 0 to 1, 127 of 128 rows',
      (s, h, q) => s === 1 && h * 64 + q < 128 && h * 64 + q > 0,
    ],
  ] as const satisfies readonly (readonly [string, Parameters<typeof rowsWhere>[0]])[])(
    '%s',
    (text, picks) => {
      expect(textOf(picks)).toBe(text);
    },
  );

  it('says which rows are a sample', () => {
    const shape = { ...usual, batch: 1, heads: 2, queries: 3 };
    const rows = { queries: Int32Array.of(5, 90, 400, 2, 90, 300), of: 512 };
    expect(describePlace(placeOfRows([1], { shape, rows }))).toBe('head 0, 1 of 3 sampled rows');
    expect(describePlace(placeOfRows([3, 4, 5], { shape, rows }))).toBe('head 1');
  });

  it('counts queries and keys of packed sequences within their own', () => {
    const shape = { ...usual, batch: 1, queries: 60, keys: 90 };
    const sequences: Sequence[] = sequencesOf([
      [10, 20],
      [0, 0],
      [50, 70],
    ]);
    const layout = { shape, sequences };
    const inSecond = rowsWhere((_, h, q) => h === 3 && q >= 12 && q < 14, shape);
    expect(describePlace(placeOfRows(inSecond, layout))).toBe(
      'sequence 2, head 3, queries 2 to 3, 2 of 50 rows',
    );
    expect(
      describePlace(
        placeOfRows(
          rowsWhere(() => true, shape),
          layout,
        ),
      ),
    ).toBe('everywhere');
    const keys = Array.from({ length: 8 }, (_, i) => 90 + 24 + i);
    expect(describePlace(placeOfKeys(keys, layout))).toBe('sequence 2, kv head 1, keys 4 to 11');
  });

  it('has columns and keys behind the rows', () => {
    const place = { ...everywhere, columns: axisOf([5, 6], 64), keys: axisOf([3], 96) };
    expect(describePlace(place)).toBe('key 3, columns 5 to 6');
  });
});

/** Members that an axis names. */
function membersOf(axis: PlaceAxis | null, of: number): number[] {
  return Array.from({ length: of }, (_, x) => x).filter((x) => {
    if (axis === null) return true;
    const at = axis.each === null ? x : x % axis.each;
    return axis.ranges.some(({ first, last }) => first <= at && at <= last);
  });
}

describe('the place of rows', () => {
  const some = (below: number) =>
    fc.uniqueArray(fc.nat({ max: below - 1 }), { minLength: 1, maxLength: below });

  it('names the sequences, heads and queries of a product exactly, or counts its rows', () => {
    fc.assert(
      fc.property(some(2), some(4), some(64), (ofSequences, ofHeads, ofQueries) => {
        const rows = rowsWhere(
          (s, h, q) => ofSequences.includes(s) && ofHeads.includes(h) && ofQueries.includes(q),
        );
        const place = placeOfRows(rows, { shape: usual });
        expect(membersOf(place.sequences, 2)).toEqual([...ofSequences].sort((a, b) => a - b));
        expect(membersOf(place.heads, 4)).toEqual([...ofHeads].sort((a, b) => a - b));
        expect(place.rows?.count ?? ofSequences.length * ofHeads.length * 64).toBe(rows.length);
        if (place.queries !== null)
          expect(membersOf(place.queries, 64)).toEqual([...ofQueries].sort((a, b) => a - b));
      }),
    );
  });

  it('names every row that it is made of, and none beside where it does not count them', () => {
    fc.assert(
      fc.property(some(512), (rows) => {
        const place = placeOfRows(rows, { shape: usual });
        const named = rowsWhere(
          (s, h, q) =>
            membersOf(place.sequences, 2).includes(s) &&
            membersOf(place.heads, 4).includes(h) &&
            membersOf(place.queries, 64).includes(q),
        );
        expect(rows.every((row) => named.includes(row))).toBe(true);
        if (place.rows === null || place.queries !== null) expect(named).toHaveLength(rows.length);
        if (place.rows !== null) expect(place.rows.count).toBe(rows.length);
      }),
      { numRuns: 50 },
    );
  });
});
