import { describe, expect, it } from 'vitest';
import {
  upTo,
  sizes,
  heads,
  drawn,
  seeds,
  all,
  dot,
  headsOf,
  deviation,
  expectFilled,
  scale,
} from './drawn-values.js';

describe('levels of scores', () => {
  it.each([
    ['deeply-negative', 1500, 9000],
    ['negative-scores', 64, 380],
  ] as const)('%s: one level of the first channel', (name, nearest, farthest) => {
    const levels = all({ name }).map(({ q, k }) => {
      const [level] = q;
      expect(q.every((x, i) => i % 4 > 0 || x === level)).toBe(true);
      expect(k.every((x, i) => i % 4 > 0 || x === -level)).toBe(true);
      return level ** 2 * scale;
    });
    expectFilled(levels.map(Math.round), nearest, farthest);
    for (const x of levels) expect(Math.abs(x - Math.round(x))).toBeLessThan(1e-9);
    const { q, k } = drawn({ name, of: { queries: 60, keys: 120 } }, 1);
    const rest = (tensor: Float64Array) => deviation(tensor.filter((_, i) => i % 4 > 0));
    // The scores of the others deviate by 1.5 nats.
    const wanted = name === 'negative-scores' ? 1.5 / (scale * Math.sqrt(3)) : 1;
    for (const tensor of [q, k])
      expect(Math.abs(rest(tensor) ** 2 / wanted - 1)).toBeLessThan(0.15);
  });

  it('negative-scores of one dimension: spread by a sixteenth', () => {
    const ratios = all({ name: 'negative-scores', of: { qkDim: 1 } }).flatMap(({ q, k }) =>
      [...k].map((x) => -x / q[0]),
    );
    expectFilled(ratios, 1, 1 + 1 / 16);
  });

  it('one-deep-query: of signs of the head, 128 to 1024 nats below 0', () => {
    const scores = all({ name: 'one-deep-query', of: { queries: 1 } }).flatMap((values) =>
      headsOf(values, { ...sizes, queries: 1 }).flatMap(({ queries, keys }) => {
        for (const query of queries)
          for (const key of keys)
            expect(query.every((x, c) => Math.sign(x) === -Math.sign(key[c]))).toBe(true);
        return queries.flatMap((query) => keys.map((key) => dot(query, key) * scale));
      }),
    );
    expectFilled(
      scores.map((x) => -x),
      128,
      1024 * (1 + 1 / 64) ** 2,
    );
  });

  it('integer-scores: whole numbers up to 2 in sixteen channels', () => {
    const used = all({ name: 'integer-scores', of: { qkDim: 40 } }).map(
      ({ q, k, scale: factor }) => {
        expect(factor).toBe(Math.LN2);
        expectFilled([...q, ...k], -2, 2, 0);
        expect([...q, ...k].every(Number.isInteger)).toBe(true);
        const channels = upTo(40).filter((c) => q.some((x, i) => i % 40 === c && x !== 0));
        expect(channels).toEqual(upTo(16, channels[0]));
        return channels[0];
      },
    );
    expectFilled(used, 0, 24, 3);
  });

  it('near-overflow: the last eighth below 1e5, or below the largest number, and a scale of some nats', () => {
    for (const [format, peak] of [
      ['fp32', 1e5],
      ['fp16', 65504],
      ['e4m3', 448],
    ] as const) {
      const odd = all({ name: 'near-overflow', format, scaleKind: 'odd' });
      for (const { q, k } of odd.slice(0, 5))
        for (const tensor of [q, k]) {
          expectFilled([...tensor].map(Math.abs), (peak * 7) / 8, peak);
          expect(new Set([...tensor].map(Math.sign))).toEqual(new Set([1, -1]));
        }
      const nats = odd.map(({ scale: factor }) => Math.round(factor! * peak ** 2 * Math.sqrt(4)));
      expect(new Set(nats)).toEqual(new Set([1, 2, 4, 8]));
      expect(drawn({ name: 'near-overflow', format }, 1).scale).toBeUndefined();
    }
  });
});

describe('scores along the keys', () => {
  const many = { queries: 150, keys: 9 };
  const mean = (rows: readonly (readonly number[])[]) =>
    upTo(4).map((c) => rows.reduce((sum, row) => sum + row[c], 0) / rows.length);

  it('sink: the first key of each head along its queries, 7 above', () => {
    const own = { ...sizes, ...many };
    const directions = headsOf(drawn({ name: 'sink', of: many }, 1), own).map(
      ({ queries, keys: [first, ...others] }) => {
        expect(dot(first, first) * scale).toBeCloseTo(7, 9);
        expect(Math.abs(dot(mean(queries), first) * scale - 7)).toBeLessThan(0.8);
        expect(deviation(others.flat())).toBeLessThan(1.6);
        expect(deviation(others.flat())).toBeGreaterThan(0.5);
        return first.map((x) => x.toFixed(3)).join();
      },
    );
    expect(new Set(directions).size).toBe(heads);
  });

  it.each([
    ['ascending', (share: number) => share],
    ['descending', (share: number) => 1 - share],
  ] as const)('%s: by 24 along the queries of the head', (name, slope) => {
    const own = { ...sizes, ...many };
    for (const { queries, keys } of headsOf(drawn({ name, of: many }, 2), own)) {
      const along = mean(queries);
      expect(Math.abs(dot(along, along) * scale - 24)).toBeLessThan(1.5);
      keys.forEach((key, j) =>
        expect(Math.abs(dot(along, key) * scale - 24 * slope(j / 8))).toBeLessThan(3),
      );
      const noise = queries.flatMap((query) => query.map((x, c) => x - along[c]));
      expect(Math.abs(deviation(noise) - 0.25)).toBeLessThan(0.03);
    }
  });

  it.each([
    ['steps-below', -1],
    ['steps-above', 1],
  ] as const)(
    '%s: the first key of a block at its level, the others 4 to 8 below, but for noise below 4',
    (name, side) => {
      const step = 8 + side / 16;
      const own = { ...sizes, keys: 20, qkDim: 12 };
      const orders = seeds.slice(0, 6).map((seed) => {
        const values = drawn({ name, of: own }, seed);
        expect(values.scale).toBe(Math.LN2);
        const ofHeads = headsOf(values, own).map(({ queries, keys }) => {
          const [query] = queries;
          for (const other of queries)
            expect(other.slice(0, 5)).toEqual([256, 32, 4, 1 / 2, 1 / 16]);
          const level = (key: readonly number[]) => dot(query.slice(0, 5), key.slice(0, 5));
          const isRising = level(keys[0]) === 0;
          keys.forEach((key, j) => {
            const block = Math.floor(j / 4);
            const wanted = (isRising ? block : 4 - block) * step;
            const noise = Math.abs(dot(query.slice(5), key.slice(5)));
            if (j % 4 === 0) expect([level(key), noise]).toEqual([wanted, 0]);
            else {
              expect(level(key)).toBeGreaterThanOrEqual(wanted - 8);
              expect(level(key)).toBeLessThanOrEqual(wanted - 4);
              expect(noise).toBeLessThan(4);
              expect(noise).toBeGreaterThan(0);
            }
            expect(
              key.slice(0, 5).every((digit) => Math.abs(digit) < 8 && Number.isInteger(digit)),
            ).toBe(true);
          });
          return isRising;
        });
        expect(new Set(ofHeads).size).toBe(1);
        return ofHeads[0];
      });
      expect(new Set(orders)).toEqual(new Set([true, false]));
      const far = drawn({ name, of: { ...own, keys: 1200 } }, 1);
      const levels = headsOf(far, { ...own, keys: 1200 })[0].keys.map((key) =>
        dot([256, 32, 4, 1 / 2, 1 / 16], key.slice(0, 5)),
      );
      expect(Math.max(...levels)).toBe(2048 - 1 / 16);
      expect(() => drawn({ name, of: { qkDim: 9 } }, 1)).toThrow(/need 10 dimensions, not 9/);
    },
  );
});
