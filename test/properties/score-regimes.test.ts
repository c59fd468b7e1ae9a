import { describe, expect, it } from 'vitest';
import {
  scoreProblem,
  scoreRegime,
  scoreRegimeNames,
  type ScoreRegimeName,
} from '../../properties/index.js';
import { decodeToFloat64, formats, type FormatName } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem.js';
import { RequestError } from '../../src/request-error.js';

const request = { queries: 24, keys: 640, dim: 64, seed: 7, format: 'bf16' } as const;
const everyFormat = Object.keys(formats) as FormatName[];

const values = ({ data, format }: Tensor): Float64Array => decodeToFloat64(data, formats[format]);

/** Scores in log2, scale · log2 e included, row by row; fp64. */
function scores({ q, k, scale }: Problem): number[][] {
  const dim = q.shape.at(-1)!;
  const [queries, keys] = [values(q), values(k)];
  return Array.from({ length: queries.length / dim }, (_, i) =>
    Array.from({ length: keys.length / dim }, (_, j) => {
      let sum = 0;
      for (let c = 0; c < dim; c++) sum += queries[i * dim + c]! * keys[j * dim + c]!;
      return sum * Math.fround(scale * Math.LOG2E);
    }),
  );
}

/** Largest score of each block of 128 keys. */
const blockMaxima = (row: readonly number[]): number[] =>
  Array.from({ length: Math.ceil(row.length / 128) }, (_, b) =>
    Math.max(...row.slice(128 * b, 128 * (b + 1))),
  );

const mean = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) / list.length;

describe('a problem in a regime of scores', () => {
  it.each(scoreRegimeNames)('%s is finite and repeatable in every format', (regime) => {
    for (const format of everyFormat) {
      const small = { ...request, queries: 3, keys: 130, dim: 16, format };
      const problem = scoreProblem(regime, small);
      expect(scoreProblem(regime, small)).toEqual(problem);
      expect(scoreProblem(regime, { ...small, seed: 8 })).not.toEqual(problem);
      expect(problem.q.shape).toEqual([1, 1, 3, 16]);
      expect(problem.k.shape).toEqual([1, 1, 130, 16]);
      for (const tensor of [problem.q, problem.k, problem.v])
        expect(values(tensor).every(Number.isFinite)).toBe(true);
    }
  });

  it.each([
    ['normal-1', 1],
    ['normal-4', 4],
    ['normal-16', 16],
  ] as const)('%s has scores of that standard deviation', (regime, deviation) => {
    const all = scores(scoreProblem(regime, { ...request, queries: 64 })).flat();
    const natural = all.map((x) => x * Math.LN2);
    const found = Math.sqrt(mean(natural.map((x) => x * x)));
    // Rows and columns share 64·64 + 640·64 normal numbers: a few per cent either way.
    expect(found / deviation).toBeGreaterThan(0.85);
    expect(found / deviation).toBeLessThan(1.15);
  });

  it('a sink exceeds the other keys by 7, in natural units, on average', () => {
    const rows = scores(scoreProblem('sink', { ...request, queries: 256 }));
    const excess = mean(rows.map(([first, ...rest]) => (first! - mean(rest)) * Math.LN2));
    // The deviation over 256 rows is about √7/√(8·256); half a unit is far beyond it.
    expect(Math.abs(excess - 7)).toBeLessThan(0.5);
  });

  it("Student's t has heavier tails than normal numbers", () => {
    const kurtosis = (regime: ScoreRegimeName): number => {
      const all = [...values(scoreProblem(regime, request).k)];
      return mean(all.map((x) => x ** 4)) / mean(all.map((x) => x ** 2)) ** 2;
    };
    // 3 for normal numbers, infinite for Student's t with 3 degrees of freedom.
    expect(kurtosis('normal-1')).toBeLessThan(3.5);
    expect(kurtosis('student-t')).toBeGreaterThan(6);
  });

  it.each([
    ['ascending', 1],
    ['descending', -1],
  ] as const)('%s moves the maximum of every row from block to block', (regime, sign) => {
    for (const row of scores(scoreProblem(regime, request))) {
      const maxima = blockMaxima(row);
      for (let b = 1; b < maxima.length; b++)
        expect(sign * (maxima[b]! - maxima[b - 1]!)).toBeGreaterThan(0);
    }
  });

  it('positive values have no sign, constant keys no differences', () => {
    expect(values(scoreProblem('positive-values', request).v).every((x) => x >= 0)).toBe(true);
    const keys = values(scoreProblem('constant-keys', request).k);
    expect(keys.every((x, i) => x === keys[i % request.dim])).toBe(true);
    expect(keys.some((x) => x !== 0)).toBe(true);
  });
});

describe('steps of the maximum', () => {
  const cases = everyFormat.flatMap((format) =>
    [10, 64].flatMap((dim) => [2, 8, 16].map((step) => [format, dim, step] as const)),
  );
  it.each(cases)('in %s, %i dimensions, are exactly 1/16 beside %f', (format, dim, step) => {
    for (const [regime, beside] of [
      ['steps-below', -1 / 16],
      ['steps-above', 1 / 16],
    ] as const) {
      const problem = scoreProblem(regime, { ...request, queries: 3, format, dim, step });
      expect(Math.fround(problem.scale * Math.LOG2E)).toBe(1);
      for (const row of scores(problem)) {
        const maxima = blockMaxima(row);
        expect(maxima).toEqual(maxima.map((_, b) => (maxima.length - 1 - b) * (step + beside)));
        // One key of each block is at its maximum, the others are out of the way.
        for (let key = 0; key < row.length; key++)
          if (key % 128 !== 0)
            expect(row[key]!).toBeLessThan(maxima[Math.floor(key / 128)]! - 0.01);
      }
    }
  });

  it('are told apart from the regimes without', () => {
    const withSteps = scoreRegimeNames.filter((name) => scoreRegime(name).hasSteps);
    expect(withSteps).toEqual(['steps-below', 'steps-above']);
    for (const name of scoreRegimeNames) {
      const [two, eight] = [2, 8].map((step) => scoreProblem(name, { ...request, step }));
      expect(JSON.stringify(two) !== JSON.stringify(eight)).toBe(withSteps.includes(name));
    }
  });

  it.each([
    ['steps-below', { dim: 9 }, /steps of the maximum need 10 dimensions, not 9; give more/],
    ['steps-below', { step: 0.3 }, /step is 0\.3; give a multiple of 0\.0625/],
    ['steps-above', { step: 1 / 16 }, /step is 0\.0625/],
    ['steps', {}, /no regime of scores "steps"; choose from normal-1, /],
  ])('refuses %s with %j', (regime, change, message) => {
    const make = () => scoreProblem(regime as ScoreRegimeName, { ...request, ...change });
    expect(make).toThrow(RequestError);
    expect(make).toThrow(message);
  });
});
