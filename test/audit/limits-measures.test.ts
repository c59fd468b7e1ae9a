import { describe, expect, it } from 'vitest';
import { testElements } from '../../src/audit/element-test.js';
import { testNumbers } from '../../src/audit/number-test.js';
import { testSpread } from '../../src/audit/index.js';
import { compared, handMadeBounds, handMadeReference } from './hand-made.js';

describe('the element test', () => {
  const shape = { batch: 2, heads: 3, queries: 4, vDim: 5 };
  const count = 2 * 3 * 4 * 5;
  const filled = (value: number) => new Float64Array(count).fill(value);

  it('tells where the worst element stands, and counts those beyond their limit', () => {
    const reference = handMadeReference({ ...shape, out: (i) => i });
    // An error of 3 under a limit of 4 is less than one of 2 under a limit of 1.
    const limits = filled(4);
    const out = reference.quantities.out.values.map((x) => x + 1);
    const at = ((1 * 3 + 2) * 4 + 3) * 5 + 1;
    limits[at] = 1;
    out[at] += 1;
    out[0] += 2;
    const result = testElements(compared(reference, 'out', out, 'fp32'), limits);
    expect(result).toMatchObject({ elements: count, outside: 1, nonFinite: 0, worstRatio: 2 });
    expect(result.worst).toEqual({
      at: { batch: 1, head: 2, query: 3, column: 1 },
      value: at + 2,
      oracle: at,
      error: 2,
      bound: 1,
    });
    expect(result.medianRatio).toBe(1 / 4);
    expect(result.firstNonFinite).toBeNull();
  });

  it('takes an error as large as its limit for one within, and names the first of equals', () => {
    const reference = handMadeReference(shape);
    const result = testElements(compared(reference, 'out', filled(-1), 'fp32'), filled(1));
    expect(result).toMatchObject({ outside: 0, worstRatio: 1, medianRatio: 1 });
    expect(result.worst!.at).toEqual({ batch: 0, head: 0, query: 0, column: 0 });
    const exact = testElements(compared(reference, 'out', filled(0), 'fp32'), filled(0));
    expect(exact).toMatchObject({ outside: 0, worstRatio: 0, medianRatio: 0 });
    expect(exact.worst).toMatchObject({ error: 0, bound: 0 });
  });

  it('sorts for the median by the finite elements alone', () => {
    const reference = handMadeReference({ queries: 5 });
    const out = Float64Array.of(5, NaN, 1, 3, Infinity);
    const result = testElements(
      compared(reference, 'out', out, 'fp32'),
      new Float64Array(5).fill(10),
    );
    expect(result).toMatchObject({ nonFinite: 2, outside: 0, medianRatio: 3 / 10 });
    expect(result.firstNonFinite).toMatchObject({ query: 1, column: 0 });
    const none = testElements(
      compared(handMadeReference({ queries: 0 }), 'out', out.subarray(0, 0), 'fp32'),
      out,
    );
    expect(none).toMatchObject({ elements: 0, worstRatio: 0, medianRatio: 0, worst: null });
    const allNaN = testElements(
      compared(handMadeReference({ queries: 2 }), 'out', Float64Array.of(NaN, NaN), 'fp32'),
      Float64Array.of(1, 1),
    );
    expect(allNaN).toMatchObject({ nonFinite: 2, worstRatio: 0, medianRatio: 0, worst: null });
  });

  it('has a limit of 0 where the oracle is exact and no key is visible', () => {
    const reference = handMadeReference({ queries: 1, level: () => 'empty', lse: () => -Infinity });
    const one = (value: number) =>
      testElements(compared(reference, 'out', Float64Array.of(value), 'fp32'), Float64Array.of(0));
    expect(one(-0)).toMatchObject({ outside: 0, worstRatio: 0 });
    expect(one(-(2 ** -149))).toMatchObject({ outside: 1, worstRatio: Infinity });
  });
});

describe('the LSE test', () => {
  const shape = { batch: 2, heads: 2, queries: 3 };
  const bounds = (value: number, rows = 12) => new Float64Array(rows).fill(value);

  it('measures signed and absolute errors over the finite rows', () => {
    const lse = (row: number) => (row === 5 ? -Infinity : 1);
    const level = (row: number) => (row === 5 ? ('empty' as const) : ('fp64' as const));
    const reference = handMadeReference({ ...shape, lse, level });
    const values = reference.quantities.lse.values.map(
      (x, row) => x + (row === 7 ? -0.75 : row === 2 ? 0.5 : 0),
    );
    const result = testNumbers(compared(reference, 'lse', values, 'fp64'), bounds(0.625));
    expect(result).toMatchObject({ rows: 12, outside: 1, nonFinite: 0, max: 0.75 });
    expect(result.mean).toBeCloseTo(-0.25 / 11, 15);
    expect(result.rms).toBeCloseTo(Math.sqrt((0.75 ** 2 + 0.5 ** 2) / 11), 15);
    expect(result.worstRatio).toBeCloseTo(0.75 / 0.625, 12);
    expect(result.worst).toMatchObject({
      at: { batch: 1, head: 0, query: 1 },
      value: 0.25,
      oracle: 1,
    });
    expect(result.worst!.bound).toBeCloseTo(0.625, 12);
    expect(result.looksLike).toBeNull();
    expect(result.firstNonFinite).toBeNull();
  });

  it('adds the rounding of the stored LSE to what it is allowed, at what it may come to', () => {
    // bf16 has 8 bits: an LSE of 100 is stored to within 1/4, of 127.9, which may come to 128, within 1/2.
    const of = (exact: number, error: number, bound: number) =>
      testNumbers(
        compared(
          handMadeReference({ queries: 1, lse: () => exact }),
          'lse',
          Float64Array.of(exact + error),
          'bf16',
        ),
        Float64Array.of(bound),
      );
    expect(of(100, 0.25, 0).outside).toBe(0);
    expect(of(100, 0.2501, 0).outside).toBe(1);
    expect(of(-100, -0.3, 0.0625).outside).toBe(0);
    expect(of(100, 0.32, 0.0625).outside).toBe(1);
    expect(of(127.9, 0.59, 0.125).outside).toBe(0);
    expect(of(127.9, 0.63, 0.125).outside).toBe(1);
    expect(of(100, 0.25, 0)).toMatchObject({ worstRatio: 1 });
    expect(of(0, 0, 0)).toMatchObject({
      worstRatio: 0,
      outside: 0,
      worst: { value: 0, oracle: 0 },
    });
  });

  it('names the first of rows that use as much of their bound', () => {
    const reference = handMadeReference({ queries: 3 });
    const { worst } = testNumbers(
      compared(reference, 'lse', Float64Array.of(0, 0.5, -0.5), 'fp64'),
      bounds(1, 3),
    );
    expect(worst!.at).toMatchObject({ query: 1 });
  });

  it('without rows, or with none that is finite, measures nothing', () => {
    const none = testNumbers(
      compared(handMadeReference({ queries: 0 }), 'lse', bounds(0, 0), 'fp32'),
      bounds(0, 0),
    );
    expect(none).toMatchObject({ rows: 0, outside: 0, max: 0, rms: 0, mean: 0, worst: null });
    const infinite = testNumbers(
      compared(
        handMadeReference({ queries: 2, lse: () => Infinity, level: () => 'special' }),
        'lse',
        Float64Array.of(1, Infinity),
        'fp32',
      ),
      bounds(1, 2),
    );
    expect(infinite).toMatchObject({ nonFinite: 1, outside: 0, rms: 0, mean: 0, worstRatio: 0 });
    expect(infinite.firstNonFinite).toMatchObject({ value: 1, oracle: Infinity, at: { query: 0 } });
  });

  describe('says what the whole tensor would pass as', () => {
    const lse = (row: number) => 2 + Math.sin(row);
    const reference = handMadeReference({ ...shape, lse });
    const looksLike = (change: (x: number, row: number) => number) =>
      testNumbers(
        compared(reference, 'lse', reference.quantities.lse.values.map(change), 'fp32'),
        bounds(1e-4),
      ).looksLike;

    it('base 2, or an offset', () => {
      expect(looksLike((x) => x)).toBeNull();
      expect(looksLike((x) => x / Math.LN2)).toBe('base-2');
      expect(looksLike((x) => x + 0.01)).toBe('offset');
      expect(looksLike((x) => x - 0.01)).toBe('offset');
      expect(looksLike((x, row) => x - 0.01 + 1e-4 * Math.cos(row))).toBe('offset');
    });
    it('and not that where one row does not fit', () => {
      expect(looksLike((x, row) => (row === 11 ? x : x / Math.LN2))).toBeNull();
      expect(looksLike((x, row) => (row === 0 ? x : x + 0.01))).toBeNull();
      expect(looksLike((x, row) => (row === 0 ? Infinity : x + 0.01))).toBeNull();
    });
    it('nor where most rows are right', () => {
      expect(looksLike((x, row) => (row === 3 ? x + 1.9e-4 : x))).toBeNull();
      expect(looksLike((x, row) => x + (row % 2 === 0 ? 1.5e-4 : -1.5e-4))).toBeNull();
    });
    it('whatever rows without keys hold', () => {
      const withEmpty = handMadeReference({
        queries: 4,
        lse: (row) => (row === 0 ? -Infinity : lse(row)),
        level: (row) => (row === 0 ? 'empty' : 'fp64'),
      });
      const values = withEmpty.quantities.lse.values.map((x) => x / Math.LN2);
      expect(
        testNumbers(compared(withEmpty, 'lse', values, 'fp32'), bounds(1e-4, 4)).looksLike,
      ).toBe('base-2');
    });
  });
});

describe('the spread test', () => {
  const rate = 1e-9;

  it('allows one element between a Gaussian of its deviation and any sub-Gaussian', () => {
    const reference = handMadeReference({ heads: 2, queries: 100, vDim: 10 });
    const count = 2000;
    const out = new Float64Array(count);
    out[13] = 0.5;
    const limit = (of: Parameters<typeof handMadeBounds>[1]) =>
      testSpread(compared(reference, 'out', out, 'fp32'), handMadeBounds(reference, of), rate)
        .worst!.bound;
    // |x| > z with probability at most 2·exp(−z²/2) for a sub-Gaussian, of which half is for elements.
    const most = Math.sqrt(2 * Math.log((4 * count) / rate));
    // A Gaussian exceeds z with probability of at least 2·φ(z)·(1/z − 1/z³).
    const least = most - 0.6;
    const tail =
      Math.sqrt(2 / Math.PI) * Math.exp(-(least ** 2) / 2) * (1 / least - 1 / least ** 3);
    expect(count * tail).toBeGreaterThan(rate / 2);
    expect(limit({ deviation: 1 })).toBeLessThanOrEqual(most * (1 + 1e-12));
    expect(limit({ deviation: 1 })).toBeGreaterThan(least);
    // Systematic parts add, the worst case caps.
    expect(limit({ deviation: 1, systematic: 3 })).toBeCloseTo(limit({ deviation: 1 }) + 3, 12);
    expect(limit({ deviation: 1, total: 2 })).toBe(2);
    expect(limit({ deviation: 0, systematic: 3 })).toBe(3);
    // What is known is in the deviation: nothing is random beside it, but bits of it may differ.
    expect(limit({ deviation: 1, known: 1 })).toBeCloseTo(limit({ deviation: 1 }), 12);
  });

  it('takes what is known of an element as it is, where it is more than of its row', () => {
    const reference = handMadeReference({ queries: 1, vDim: 16 });
    const bounds = handMadeBounds(reference, { deviation: 1 });
    bounds.quantities.out.known[3] = 1;
    bounds.quantities.out.deviation[3] = Math.SQRT2;
    const limit = (element: number) => {
      const out = new Float64Array(16);
      out[element] = 1;
      return testSpread(compared(reference, 'out', out, 'fp32'), bounds, rate).worst!.bound;
    };
    const z = Math.sqrt(2 * Math.log((4 * 16) / rate));
    expect(limit(3)).toBeCloseTo(z + 1, 10);
    expect(limit(4)).toBeCloseTo(z * Math.sqrt(1 + 1 / 16), 10);
  });

  it('counts elements beyond their limit, names the worst, and skips those without one', () => {
    const reference = handMadeReference({
      batch: 2,
      heads: 2,
      queries: 2,
      vDim: 3,
      out: (i) => 8 + i,
    });
    const bounds = handMadeBounds(reference, { total: 2, systematic: 2 });
    const out = reference.quantities.out.values.map((x) => x + 1);
    out[7] -= 3.5;
    out[15] += 1;
    out[20] += 3;
    const result = testSpread(compared(reference, 'out', out, 'fp32'), bounds, rate);
    expect(result).toMatchObject({ outside: 2, worstRatio: 2 });
    expect(result.worst).toEqual({
      at: { batch: 1, head: 1, query: 0, column: 2 },
      error: 4,
      bound: 2,
    });
    out[15] -= 1;
    out[20] = NaN;
    bounds.quantities.out.total[7] = bounds.quantities.out.systematic[7] = Infinity;
    const rest = testSpread(compared(reference, 'out', out, 'fp32'), bounds, rate);
    expect(rest).toMatchObject({
      outside: 0,
      worstRatio: 0.5,
      worst: { at: { query: 0, column: 0 } },
    });
    expect(rest.measured).toBeCloseTo(1, 12);
    const exact = testSpread(
      compared(reference, 'out', reference.quantities.out.values, 'fp32'),
      bounds,
      rate,
    );
    expect(exact).toMatchObject({ outside: 0, worstRatio: 0, worst: null, measured: 0 });
  });

  /** The limit and the rest of one scope, for an output that is `error` off everywhere. */
  const scopeOf = (
    scope: 'tile' | 'head',
    sizes: { readonly heads: number; readonly queries: number; readonly vDim?: number },
    of: Parameters<typeof handMadeBounds>[1],
    unit?: (row: number) => number,
    error = 0.5,
  ) => {
    const reference = handMadeReference(sizes);
    const out = new Float64Array(reference.quantities.out.values.length).fill(error);
    const { results } = testSpread(
      compared(reference, 'out', out, 'fp32'),
      handMadeBounds(reference, of, unit),
      rate,
    );
    return results.find((result) => result.scope === scope)!;
  };

  it('allows the root mean square of rows what a sum of squares can come to', () => {
    const [heads, queries] = [2, 200];
    for (const [scope, rows, tests] of [
      ['head', queries, 2],
      ['tile', 128, 4],
    ] as const) {
      const { measured, expected, limit } = scopeOf(scope, { heads, queries }, { deviation: 1 });
      expect(measured).toBeCloseTo(0.5, 12);
      expect(expected).toBeCloseTo(1, 12);
      // Σ x² ≤ n + 2√(nt) + 2t but for e^-t (Laurent and Massart), an eighth of the rate for each scope.
      const t = Math.log((8 * tests) / rate);
      const most = Math.sqrt((rows + 2 * Math.sqrt(rows * t) + 2 * t) / rows);
      expect(limit).toBeLessThanOrEqual(most * (1 + 1e-12));
      // Nothing can be said with less than the Gaussian √(2t) deviations of a sum of squares.
      expect(limit).toBeGreaterThan(Math.sqrt((rows + 2 * Math.sqrt(rows * t)) / rows) * 0.99);
    }
  });

  it('takes rows that may err alike for one, and elements of a row', () => {
    const sizes = { heads: 1, queries: 100 };
    const apart = scopeOf('head', sizes, { deviation: 1 });
    const alike = scopeOf('head', sizes, { deviation: 1 }, () => 0);
    const t = Math.log(8 / rate);
    // Every head, and every tile, has its share of the rate.
    const manyTests = { heads: 16, queries: 300 };
    for (const [scope, count] of [
      ['head', 16],
      ['tile', 48],
    ] as const) {
      const more = Math.log((8 * count) / rate);
      const { limit } = scopeOf(scope, manyTests, { deviation: 1 }, () => 0);
      expect(limit).toBeCloseTo(Math.sqrt(1 + 2 * Math.sqrt(more) + 2 * more), 10);
    }
    expect(alike.expected).toBe(apart.expected);
    expect(alike.limit).toBeCloseTo(Math.sqrt(1 + 2 * Math.sqrt(t) + 2 * t), 10);
    const wide = scopeOf('head', { heads: 1, queries: 100, vDim: 9 }, { deviation: 1 });
    expect(wide.limit).toBeCloseTo(apart.limit, 10);
    const halves = scopeOf('head', sizes, { deviation: 1 }, (row) => row % 2);
    expect(halves.limit).toBeGreaterThan(apart.limit);
    expect(halves.limit).toBeLessThan(alike.limit);
  });

  it('adds what is systematic and what is known as they are', () => {
    const sizes = { heads: 1, queries: 128 };
    expect(scopeOf('head', sizes, { systematic: 2 }).limit).toBeCloseTo(2, 12);
    expect(scopeOf('head', sizes, { deviation: 3, known: 3 }).limit).toBeCloseTo(3, 12);
    expect(scopeOf('head', sizes, { deviation: 3, known: 3 }).expected).toBeCloseTo(3, 12);
    const both = scopeOf('head', sizes, { deviation: 3, known: 3, systematic: 2 });
    expect(both.limit).toBeCloseTo(5, 12);
    // The product of the known and the random part is Gaussian: √(2t Σ known²·random²), twice.
    const random = scopeOf('head', sizes, { deviation: 1 });
    const mixed = scopeOf('head', sizes, { deviation: Math.SQRT2, known: 1 });
    const t = Math.log(8 / rate);
    expect(mixed.expected).toBeCloseTo(Math.SQRT2, 12);
    expect(mixed.limit ** 2).toBeCloseTo(1 + random.limit ** 2 + 2 * Math.sqrt((2 * t) / 128), 10);
  });

  it('names the tile and the head that use most of their limit', () => {
    const reference = handMadeReference({ batch: 2, heads: 2, queries: 300 });
    const bounds = handMadeBounds(reference, { deviation: 1 });
    for (const [head, firstRow, rows] of [
      [0, 0, 128],
      [2, 128, 128],
      [3, 256, 44],
    ] as const) {
      const out = new Float64Array(1200);
      out.fill(9, head * 300 + firstRow, head * 300 + firstRow + rows);
      const { results } = testSpread(compared(reference, 'out', out, 'fp32'), bounds, rate);
      expect(results.map(({ scope }) => scope)).toEqual(['tile', 'head']);
      expect(results[0]).toMatchObject({ head, firstRow, rows, measured: 9 });
      expect(results[1]).toMatchObject({ head, firstRow: 0, rows: 300 });
    }
  });

  it('has no result where nothing is finite, and 0 of nothing', () => {
    const reference = handMadeReference({ queries: 3 });
    const bounds = handMadeBounds(reference, { deviation: 1 });
    const { results, measured, expected } = testSpread(
      compared(reference, 'out', new Float64Array(3).fill(NaN), 'fp32'),
      bounds,
      rate,
    );
    expect(results).toEqual([]);
    expect([measured, expected]).toEqual([0, 0]);
  });
});
