import { describe, expect, it } from 'vitest';
import { attentionOracle, levels } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { singleHead, type Settings } from '../../setup/problems.js';

const random = randomValues(20260101);
const queries = 70;
const keys = 130;
const [qkDim, vDim] = [3, 4];

function normalRows(count: number, dim: number): number[][] {
  return Array.from({ length: count }, () => Array.from({ length: dim }, () => random.normal()));
}

const q = normalRows(queries, qkDim);
const k = normalRows(keys, qkDim);
const v = normalRows(keys, vDim);

/** One element of a tensor replaced: [tensor, row, column, value]. */
type Plant = readonly ['q' | 'k' | 'v', number, number, number];

/** The problem of q, k, v above with some elements replaced. */
function planted(plants: readonly Plant[], settings: Settings = {}, format: FormatName = 'fp32') {
  const rows = { q, k, v };
  const copy = (name: 'q' | 'k' | 'v') =>
    rows[name].map((row, i) =>
      row.map((x, c) => {
        const plant = plants.find(
          ([tensor, r, column]) => tensor === name && r === i && column === c,
        );
        return plant === undefined ? x : plant[3];
      }),
    );
  return singleHead(format, { q: copy('q'), k: copy('k'), v: copy('v') }, settings);
}

/** One row of the oracle's answer. */
function rowOf(problem: Problem, row: number) {
  const reference = attentionOracle(problem);
  const slice = (values: Float64Array) => [...values.subarray(row * vDim, (row + 1) * vDim)];
  return {
    out: slice(reference.quantities.out.values),
    outRadius: slice(reference.quantities.out.radius),
    magnitude: slice(reference.quantities.out.magnitude),
    lse: reference.quantities.lse.values[row],
    lseRadius: reference.quantities.lse.radius[row],
    level: levels[reference.level[row]],
  };
}

/** Asserts that all rows but those named come out bit for bit as without the plants. */
function expectOthersUntouched(
  problem: Problem,
  clean: Problem,
  touched: (row: number) => boolean,
) {
  const [with_, without] = [attentionOracle(problem), attentionOracle(clean)];
  for (let row = 0; row < queries; row++) {
    if (touched(row)) continue;
    for (const name of ['values', 'radius', 'magnitude'] as const)
      expect(with_.quantities.out[name].subarray(row * vDim, (row + 1) * vDim)).toEqual(
        without.quantities.out[name].subarray(row * vDim, (row + 1) * vDim),
      );
    for (const name of ['values', 'radius'] as const)
      expect(with_.quantities.lse[name][row]).toBe(without.quantities.lse[name][row]);
    for (const name of ['maximum', 'level'] as const)
      expect(with_[name][row]).toBe(without[name][row]);
  }
}

const nanRow = { out: [NaN, NaN, NaN, NaN], outRadius: [0, 0, 0, 0], lse: NaN, level: 'special' };
const causal = { causal: true };

describe('a NaN score makes the row and its LSE NaN', () => {
  it('from a NaN in q: that query only', () => {
    const problem = planted([['q', 5, 1, NaN]]);
    expect(rowOf(problem, 5)).toMatchObject(nanRow);
    expectOthersUntouched(problem, planted([]), (row) => row === 5);
  });

  it('from a NaN in k: every query that sees the key', () => {
    const at = 100;
    const problem = planted([['k', at, 0, NaN]], causal);
    // Query i sees key 100 from i + 60 ≥ 100 on.
    for (const row of [40, 41, 69]) expect(rowOf(problem, row)).toMatchObject(nanRow);
    expectOthersUntouched(problem, planted([], causal), (row) => row + keys - queries >= at);
  });

  it('from ∞ · 0 within the dot product', () => {
    const problem = planted([
      ['q', 5, 1, Infinity],
      ['k', 9, 1, 0],
    ]);
    expect(rowOf(problem, 5)).toMatchObject(nanRow);
    const negativeZero = planted([
      ['q', 5, 1, -0],
      ['k', 9, 1, -Infinity],
    ]);
    expect(rowOf(negativeZero, 5)).toMatchObject(nanRow);
  });

  it('from ∞ − ∞ within the dot product', () => {
    const problem = planted([
      ['k', 9, 0, Infinity],
      ['k', 9, 2, Infinity],
      ['q', 5, 0, 1],
      ['q', 5, 2, -1],
    ]);
    expect(rowOf(problem, 5)).toMatchObject(nanRow);
  });

  it('from ∞ times a scale of 0', () => {
    const problem = planted([['q', 5, 0, Infinity]], { scale: 0 });
    expect(rowOf(problem, 5)).toMatchObject(nanRow);
  });

  it('even beside a score of +∞, and even under a softcap', () => {
    const plants: Plant[] = [
      ['k', 3, 0, Infinity],
      ['k', 9, 1, NaN],
      ['q', 5, 0, 1],
    ];
    expect(rowOf(planted(plants), 5)).toMatchObject(nanRow);
    expect(rowOf(planted(plants, { softcap: 5 }), 5)).toMatchObject(nanRow);
  });
});

describe('a score of +∞ makes the row NaN and its LSE +∞', () => {
  it.each([
    ['an infinite key', [['k', 9, 0, Infinity] as const, ['q', 5, 0, 2] as const], 1],
    ['an infinite query', [['q', 5, 0, -Infinity] as const, ['k', 9, 0, -2] as const], 1],
    ['a negative scale', [['k', 9, 0, Infinity] as const, ['q', 5, 0, -2] as const], -1],
  ])('from %s', (_, plants, scale) => {
    const row = rowOf(planted(plants, { scale }), 5);
    expect(row).toMatchObject({ ...nanRow, lse: Infinity, lseRadius: 0 });
  });

  it('is not an overflow of finite products', () => {
    const problem = planted(
      [
        ['q', 5, 0, 3e38],
        ['k', 9, 0, 3e38],
      ],
      { scale: 1e-70 },
    );
    const row = rowOf(problem, 5);
    expect(row.level).not.toBe('special');
    expect(row.out.every(Number.isFinite)).toBe(true);
  });
});

describe('a score of −∞ has weight 0', () => {
  const plants: Plant[] = [
    ['k', 9, 0, -Infinity],
    ['q', 5, 0, 2],
  ];

  it('so that the row is as if the key were not there', () => {
    const with_ = rowOf(planted(plants), 5);
    const without = attentionOracle(
      singleHead('fp32', {
        q: [q[5].map((x, c) => (c === 0 ? 2 : x))],
        k: k.filter((_, j) => j !== 9),
        v: v.filter((_, j) => j !== 9),
      }),
    );
    expect(with_.level).toBe('special');
    with_.out.forEach((x, c) =>
      expect(Math.abs(x - without.quantities.out.values[c])).toBeLessThanOrEqual(
        with_.outRadius[c] + without.quantities.out.radius[c],
      ),
    );
    expect(Math.abs(with_.lse - without.quantities.lse.values[0])).toBeLessThanOrEqual(
      with_.lseRadius + without.quantities.lse.radius[0],
    );
  });

  it('and a row of nothing else is an empty row', () => {
    const rows = { q: [[1]], k: [[-Infinity], [-Infinity]], v: [[3], [4]] };
    const reference = attentionOracle(singleHead('bf16', rows));
    expect(reference.quantities.out.values[0]).toBe(0);
    expect(reference.quantities.out.radius[0]).toBe(0);
    expect(reference.quantities.lse.values[0]).toBe(-Infinity);
    expect(reference.quantities.lse.radius[0]).toBe(0);
  });

  it('unless a mask hides it: then nothing at all changes', () => {
    const hidden = planted([['k', 129, 0, -Infinity]], causal);
    expectOthersUntouched(hidden, planted([], causal), (row) => row === queries - 1);
  });
});

describe('a softcap turns scores of ±∞ into ±cap', () => {
  const one = (sign: number, scale: number) =>
    attentionOracle(
      singleHead(
        'fp32',
        { q: [[1]], k: [[sign * Infinity], [0]], v: [[1], [0]] },
        { softcap: 2, scale },
      ),
    );

  it.each([
    [1, 1, 2],
    [-1, 1, -2],
    [1, -1, -2],
    [-1, -3, 2],
  ])('k = %d · ∞, scale %d: score %d', (sign, scale, score) => {
    const reference = one(sign, scale);
    const expected = 1 / (1 + Math.exp(-score));
    expect(Math.abs(reference.quantities.out.values[0] - expected)).toBeLessThan(1e-15);
    expect(
      Math.abs(reference.quantities.lse.values[0] - Math.log(1 + Math.exp(score))),
    ).toBeLessThan(1e-15);
    expect(levels[reference.level[0]]).toBe('special');
  });

  it('also at the level that computes cancelling values', () => {
    const rows = { q: [[1]], k: [[Infinity], [Infinity]], v: [[1], [-1]] };
    const reference = attentionOracle(singleHead('fp32', rows, { softcap: 2 }));
    expect(reference.quantities.out.values[0]).toBe(0);
    expect(reference.quantities.out.radius[0]).toBeLessThan(2 ** -158);
  });
});

describe('special values in V', () => {
  const column = (plants: readonly Plant[], settings: Settings = {}) =>
    rowOf(planted(plants, settings), 5);

  it('a NaN under a positive weight makes its column NaN, and only that', () => {
    const row = column([['v', 9, 2, NaN]]);
    const clean = rowOf(planted([]), 5);
    expect(row.out[2]).toBeNaN();
    expect(row.outRadius[2]).toBe(0);
    for (const c of [0, 1, 3]) {
      expect(row.out[c]).toBe(clean.out[c]);
      expect(row.outRadius[c]).toBe(clean.outRadius[c]);
    }
    expect(row.lse).toBe(clean.lse);
  });

  it('one infinity makes the column that infinity', () => {
    expect(column([['v', 9, 2, -Infinity]]).out[2]).toBe(-Infinity);
    const twice = column([
      ['v', 9, 2, Infinity],
      ['v', 120, 2, Infinity],
    ]);
    expect(twice.out[2]).toBe(Infinity);
    expect(twice.magnitude[2]).toBe(Infinity);
    expect(twice.outRadius[2]).toBe(0);
  });

  it('both infinities make it NaN', () => {
    const row = column([
      ['v', 9, 2, Infinity],
      ['v', 120, 2, -Infinity],
    ]);
    expect(row.out[2]).toBeNaN();
  });

  it('an infinity or a NaN under a weight of 0 makes it NaN', () => {
    for (const value of [Infinity, -Infinity, NaN]) {
      const row = column([
        ['k', 9, 0, -Infinity],
        ['q', 5, 0, 2],
        ['v', 9, 2, value],
      ]);
      expect(row.out[2]).toBeNaN();
      expect(row.out[1]).toBeTypeOf('number');
      expect(Number.isFinite(row.out[1])).toBe(true);
    }
    const empty = singleHead('fp32', { q: [[1]], k: [[-Infinity]], v: [[Infinity, 1]] });
    expect([...attentionOracle(empty).quantities.out.values]).toEqual([NaN, 0]);
  });

  it('an infinity under a tiny weight is still infinite', () => {
    const rows = { q: [[1]], k: [[0], [-5000]], v: [[1], [Infinity]] };
    expect(attentionOracle(singleHead('fp32', rows)).quantities.out.values[0]).toBe(Infinity);
  });

  it('a masked one has no influence', () => {
    const problem = planted([['v', 129, 2, NaN]], causal);
    expectOthersUntouched(problem, planted([], causal), (row) => row === queries - 1);
    expect(rowOf(problem, queries - 1).out[2]).toBeNaN();
  });
});

describe('masked special values', () => {
  it('in K and V outside every window change nothing', () => {
    const window = { left: 3, right: 0 };
    // The first query sits on key 60 and sees from 57 on.
    const plants: Plant[] = [
      ['k', 0, 0, NaN],
      ['k', 56, 1, Infinity],
      ['v', 10, 0, -Infinity],
      ['v', 56, 3, NaN],
    ];
    expectOthersUntouched(planted(plants, { window }), planted([], { window }), () => false);
  });

  it('a special query without keys is an empty row', () => {
    const rows = { q: [[NaN], [1]], k: [[1]], v: [[5]] };
    const reference = attentionOracle(singleHead('fp32', rows, causal));
    expect([...reference.quantities.out.values]).toEqual([0, 5]);
    expect(reference.quantities.lse.values[0]).toBe(-Infinity);
    expect(levels[reference.level[0]]).toBe('empty');
  });

  it('the law holds in formats of 8 bits', () => {
    expect(rowOf(planted([['k', 9, 0, NaN]], {}, 'e4m3'), 5)).toMatchObject(nanRow);
    expect(rowOf(planted([['v', 9, 2, -Infinity]], {}, 'e5m2'), 5).out[2]).toBe(-Infinity);
  });
});
