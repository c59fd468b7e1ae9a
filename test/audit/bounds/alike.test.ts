import { describe, expect, it } from 'vitest';
import { encodeProblem } from '../../../properties/problems/plain-problem.js';
import { randomValues } from '../../../properties/problems/values.js';
import {
  alikeBinsPerOctave,
  createRowNumbers,
  isClustered,
} from '../../../src/audit/bounds/alike.js';
import { RowErrors } from '../../../src/audit/bounds/technique-bound.js';
import { formats, round, ulp } from '../../../src/formats/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { preciseOracle } from './violations.js';

const inTurn = turns(import.meta.url);

describe.each(['bf16', 'fp16', 'e4m3', 'e5m2'] as const)('bins of %s weights', (name) => {
  const format = formats[name];
  const bins = alikeBinsPerOctave(name);

  /**
   * The mean square of Σ δ over weights spread evenly over `width` ulps at random places, in units of what
   * independent roundings would make of as many; and what counting bins makes of it.
   */
  function spreadOf(width: number, count: number, draws: number) {
    const { uniform } = randomValues(Math.round(1000 * width) + count);
    let [found, counted] = [0, 0];
    for (let draw = 0; draw < draws; draw++) {
      const first = 2 ** uniform();
      const unit = ulp(format, first);
      const weights = Array.from({ length: count }, (_, i) => first + (width * unit * i) / count);
      const sum = weights.reduce((total, p) => total + (round(format, p) - p), 0);
      const places = weights.map((p) => Math.round(Math.log2(p) * bins));
      const counts = new Map<number, number>();
      for (const place of places) counts.set(place, (counts.get(place) ?? 0) + 1);
      found += (sum / unit) ** 2 * 12;
      counted += places.reduce((total, place) => total + counts.get(place)!, 0);
    }
    return { found: found / draws / count, counted: counted / draws / count };
  }

  // Equal weights, and some widths that TEST_SEED draws.
  inTurn.each([0, ...sampled([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2.5], 3)])(
    'admit what a cluster of weights adds up to that is %f ulps wide',
    (width) => {
      const { found, counted } = spreadOf(width, 48, 2000);
      // A small sample of squares of a uniform variable, and small clusters that straddle two bins.
      expect(found).toBeLessThan(1.15 * counted);
    },
  );

  it('cost little where weights are spread over octaves', () => {
    const octaves = 2 ** (format.precision - 1) / 16;
    const { counted } = spreadOf(16 * octaves, 16, 200);
    expect(counted).toBeLessThan(1.5);
  });
});

describe('clustered rows', () => {
  const row = (counts: readonly (readonly [weights: number, each: number])[]) => {
    const errors = new RowErrors();
    for (const [weights, each] of counts) {
      errors.mass += weights * each;
      errors.squares += weights * each * each;
      errors.squaresAlike += weights * weights * each * each;
    }
    return isClustered(errors);
  };

  it('are rows whose weights are in few bins, and share these', () => {
    expect(row([[64, 1 / 64]])).toBe(true);
    expect(
      row([
        [32, 1 / 64],
        [32, 1 / 64],
      ]),
    ).toBe(true);
  });

  it('are not rows of one heavy weight, nor of many different ones', () => {
    expect(row([[1, 1]])).toBe(false);
    expect(
      row([
        [1, 0.75],
        [25, 0.01],
      ]),
    ).toBe(false);
    expect(row(Array.from({ length: 64 }, () => [1, 1 / 64] as const))).toBe(false);
    // Pairs in 32 bins.
    expect(row(Array.from({ length: 32 }, () => [2, 1 / 64] as const))).toBe(false);
  });
});

describe('numbers of rows', () => {
  const sizes = { batch: 1, kvHeads: 1, groupSize: 2, queries: 4, keys: 40, qkDim: 8, vDim: 5 };
  const { normal } = randomValues(31);
  const values = (count: number) => Float64Array.from({ length: count }, normal);
  const q = values(2 * 4 * 8);
  // Rows 0 and 1 of each head are equal, row 2 nearly.
  for (const head of [0, 1])
    for (let t = 0; t < 8; t++) {
      const first = head * 32 + t;
      q[first + 8] = q[first];
      q[first + 16] = q[first] * (1 + 2 ** -14);
    }
  const problem = encodeProblem({
    sizes,
    formats: { q: 'fp32', k: 'fp32', v: 'fp32' },
    values: { q, k: values(40 * 8), v: values(40 * 5) },
    scale: 0.5,
    causal: false,
    window: null,
    softcap: null,
  });
  const reference = preciseOracle(problem);
  const rows = Array.from({ length: 8 }, (_, row) => row);

  it('are the same for rows that are nearly equal, and for no others', () => {
    const number = createRowNumbers(reference, 'e4m3');
    const numbers = rows.map((row) => number(row, false));
    expect(numbers[1]).toBe(numbers[0]);
    expect(numbers[2]).toBe(numbers[0]);
    expect(numbers[5]).toBe(numbers[4]);
    expect(new Set([0, 3, 4, 7].map((row) => numbers[row])).size).toBe(4);
  });

  it('are the same for all clustered rows of a head', () => {
    const number = createRowNumbers(reference, 'bf16');
    const numbers = rows.map((row) => number(row, row % 4 !== 3));
    for (const head of [0, 4]) {
      expect(new Set(numbers.slice(head, head + 3)).size).toBe(1);
      expect(numbers[head + 3]).not.toBe(numbers[head]);
    }
    expect(numbers[4]).not.toBe(numbers[0]);
  });
});
