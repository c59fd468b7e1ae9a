import { describe, expect, it } from 'vitest';
import { signedRankTest } from '../../src/audit/index.js';
import { pseudorandom } from '../setup/problems.js';

/** Every way to give sizes a sign. */
function* signed(sizes: readonly number[]): Generator<number[]> {
  for (let signs = 0; signs < 2 ** sizes.length; signs++)
    yield sizes.map((size, i) => ((signs >> i) & 1 ? size : -size));
}

/** Mid-ranks by counting: those below, and half of those that are equal. */
function ranksOf(values: readonly number[]): number[] {
  const sizes = values.map(Math.abs);
  return sizes.map(
    (size) =>
      sizes.filter((other) => other < size).length +
      (sizes.filter((other) => other === size).length + 1) / 2,
  );
}

/** How far the sum of the positive ranks is from its mean. */
function distance(values: readonly number[]): number {
  const ranks = ranksOf(values);
  const total = ranks.reduce((a, b) => a + b, 0);
  return Math.abs(ranks.reduce((sum, rank, i) => sum + (values[i] > 0 ? rank : 0), 0) - total / 2);
}

const samples = [
  [1],
  [1, 2, 3, 4, 5, 6],
  [0.5, 0.5, 0.5, 2, 2, 7, Infinity],
  [1, 1, 1, 1, 1, 1, 1, 1],
  [3, 1, 4, 1, 5, 9, 2, 6],
];

describe("Wilcoxon's signed-rank test", () => {
  it.each(samples.map((sizes) => [sizes]))('has the probability of all signs of %j', (sizes) => {
    const all = [...signed(sizes)];
    const distances = all.map(distance);
    all.forEach((values, i) => {
      const asFar = distances.filter((other) => other >= distances[i]! - 1e-9).length;
      const { pValue } = signedRankTest(Float64Array.from(values));
      if (Math.abs(pValue - asFar / all.length) > 1e-12) expect(pValue).toBe(asFar / all.length);
    });
  });

  it.each(samples.map((sizes) => [sizes]))('alarms no more often than it says, of %j', (sizes) => {
    for (const exact of [256, 0]) {
      const values = [...signed(sizes)].map(
        (one) => signedRankTest(Float64Array.from(one), exact).pValue,
      );
      // Of few units the tail of the normal distribution says little: it is for many.
      for (const rate of exact === 0 ? [0.2] : [0.01, 0.05, 0.2, 0.5])
        expect(values.filter((p) => p <= rate).length / values.length).toBeLessThanOrEqual(
          exact === 0 ? 1.5 * rate : rate,
        );
    }
  });

  it('leaves out what does not differ, and knows no direction', () => {
    const random = pseudorandom(5);
    const values = Float64Array.from({ length: 40 }, () => random() + 0.1);
    const one = signedRankTest(values);
    expect(signedRankTest(Float64Array.from([0, ...values, 0, -0]))).toEqual(one);
    const turned = signedRankTest(values.map((x) => -x));
    expect(turned.pValue).toBe(one.pValue);
    expect(turned.positive).toBe(one.units - one.positive);
    expect(signedRankTest(new Float64Array(3))).toEqual({ units: 0, positive: 0, pValue: 1 });
  });

  it('agrees with the normal tail where both can be had, which is the larger', () => {
    const random = pseudorandom(9);
    for (const shift of [0, 0.1, 0.2, 0.4]) {
      const values = Float64Array.from({ length: 200 }, () => 2 * random() + shift);
      const exact = signedRankTest(values).pValue;
      const bound = signedRankTest(values, 0).pValue;
      expect(bound).toBeGreaterThan(0.98 * exact);
      // Far out the normal tail is heavier than that of a sum of so many ranks.
      if (exact > 1e-9) expect(bound).toBeLessThan(1.5 * exact);
    }
  });
});
