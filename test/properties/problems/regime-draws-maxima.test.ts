import { describe, expect, it } from 'vitest';
import {
  upTo,
  sizes,
  heads,
  drawn,
  all,
  rowsOf,
  dot,
  headsOf,
  deviation,
  expectFilled,
  scale,
} from './drawn-values.js';

describe('maxima', () => {
  const own = { ...sizes, keys: 20 };
  const ones = (values: readonly number[]) => new Set(values.map(Math.sign)).size === 1;

  it('repeated-maxima: two to a quarter of the keys one vector, the others a quarter to three of it', () => {
    const counts = all({ name: 'repeated-maxima', of: { keys: 20 } }).flatMap((values) => {
      expectFilled([...values.v].map(Math.abs), 0.5, 4, 0.6);
      expect(ones([...values.v])).toBe(true);
      return headsOf(values, own).map(({ queries, keys }) => {
        const scores = keys.map((key) => dot(queries[0], key));
        const top = keys[scores.indexOf(Math.max(...scores))];
        const factors = keys
          .filter((key) => key !== top && key.join() !== top.join())
          .map((key) => key.map((x, c) => x / top[c]));
        expect(factors.flat().every((factor) => factor >= 0.25 && factor <= 0.75)).toBe(true);
        for (const query of queries) {
          const nats = dot(query, top) * scale;
          expect(nats).toBeGreaterThan(8 * (7 / 8) ** 2);
          expect(nats).toBeLessThan(8 * (9 / 8) ** 2);
        }
        return 20 - factors.length;
      });
    });
    expect(new Set(counts)).toEqual(new Set([2, 3, 4, 5]));
  });

  it('one-hot: one key along the queries and one against them, the others within half of it', () => {
    for (const values of all({ name: 'one-hot', of: { keys: 20 } }).slice(0, 10)) {
      const ratios = headsOf(values, own).flatMap(({ queries, keys }) => {
        const scores = keys.map((key) => dot(queries[0], key));
        const top = keys[scores.indexOf(Math.max(...scores))];
        const factors = keys.map((key) => key.map((x, c) => x / top[c]));
        expect(factors.filter(([x]) => x === 1)).toHaveLength(1);
        expect(factors.filter(([x]) => x === -1)).toHaveLength(1);
        for (const query of queries) {
          const nats = Math.abs(dot(query, top)) * scale;
          expect(nats).toBeGreaterThan(1024 * (7 / 8) ** 2);
          expect(nats).toBeLessThan(1024 * (9 / 8) ** 2);
        }
        return factors.flatMap(([x]) => (Math.abs(x) === 1 ? [] : [x]));
      });
      expectFilled(ratios, -0.5, 0.5);
    }
  });

  it('long-tail: one key at the level of the queries, the others within a sixth of it', () => {
    for (const values of all({ name: 'long-tail', of: { keys: 20 } }).slice(0, 10)) {
      const level = Math.sqrt(6.5 * 2);
      const others = headsOf(values, own).flatMap(({ queries, keys }) => {
        for (const query of queries) expect(query[0]).toBe(level);
        const peaks = keys.filter((key) => key.join() === [level, 0, 0, 0].join());
        expect(peaks).toHaveLength(1);
        return keys.filter((key) => key !== peaks[0]);
      });
      expectFilled(
        others.map(([x]) => x / level),
        -1 / 6,
        1 / 6,
      );
      // Scores of the tail deviate by 0.3 nats.
      const noise = deviation(others.flatMap(([, ...rest]) => rest));
      expect(Math.abs((noise ** 2 * Math.sqrt(3) * scale) / 0.3 - 1)).toBeLessThan(0.4);
      expect(ones([...values.v])).toBe(true);
    }
  });

  it('constant-keys and cancelling-values: one key a head, pairs that cancel', () => {
    for (const { keys } of headsOf(drawn({ name: 'constant-keys' }, 1)))
      for (const key of keys) expect(key).toEqual(keys[0]);
    expect(
      new Set(headsOf(drawn({ name: 'constant-keys' }, 1)).map(({ keys }) => keys[0][0])).size,
    ).toBe(heads);
    const residues = all({ name: 'cancelling-values', format: 'bf16' }).map(({ k, v }) => {
      const [ofKeys, ofValues] = [rowsOf(k, 4), rowsOf(v, 3)];
      for (let key = 0; key < ofKeys.length; key += 2) expect(ofKeys[key + 1]).toEqual(ofKeys[key]);
      return ofValues
        .map(([x], row) => (row % 2 === 1 ? -x / ofValues[row - 1][0] : 1 + 2 ** -7))
        .reduce((a, b) => Math.min(a, b));
    });
    expect(new Set(residues.map((x) => Number(x.toFixed(9))))).toEqual(
      new Set([1, 1 + 2 ** -7].map((x) => Number(x.toFixed(9)))),
    );
  });

  it('level-values: rows of V within a thirty-second of one row a head', () => {
    const rows = rowsOf(drawn({ name: 'level-values', of: { keys: 200 } }, 1).v, 3);
    const columns = upTo(heads * 3).map((i) =>
      rows.slice(Math.floor(i / 3) * 200, (Math.floor(i / 3) + 1) * 200).map((row) => row[i % 3]),
    );
    for (const column of columns) {
      const middle = (Math.max(...column) + Math.min(...column)) / 2;
      expectFilled(
        column.map((x) => x / middle - 1),
        -1 / 31,
        1 / 31,
        1 / 250,
      );
      expect(Math.abs(middle)).toBeGreaterThan(0.95);
      expect(Math.abs(middle)).toBeLessThan(2.1);
    }
  });
});
