import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  scoreProblem,
  scoreRegime,
  scoreRegimeNames,
  type ScoreRegimeName,
} from '../../../properties/index.js';
import { decodeToFloat64, formats, plainFormats } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const request = { queries: 24, keys: 640, dim: 64, seed: 7, format: 'bf16' } as const;
const everyFormat = plainFormats;

const values = ({ data, format }: Tensor): Float64Array => decodeToFloat64(data, formats[format]);

/** A problem without its numbers, and their bits. */
const plainly = ({ q, k, v, ...settings }: Problem) => ({
  ...settings,
  tensors: [q, k, v].map(({ data, ...rest }) => ({
    ...rest,
    bits: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
  })),
});

/** Scores in log2, scale · log2 e included, row by row; fp64. */
function scores({ q, k, scale }: Problem): number[][] {
  const dim = q.shape.at(-1)!;
  const [queries, keys] = [values(q), values(k)];
  return Array.from({ length: queries.length / dim }, (_, i) =>
    Array.from({ length: keys.length / dim }, (_, j) => {
      let sum = 0;
      for (let c = 0; c < dim; c++) sum += queries[i * dim + c] * keys[j * dim + c];
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
      expect(plainly(scoreProblem(regime, small))).toEqual(plainly(problem));
      expect(plainly(scoreProblem(regime, { ...small, seed: 8 }))).not.toEqual(plainly(problem));
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
        expect(sign * (maxima[b] - maxima[b - 1])).toBeGreaterThan(0);
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
  // TEST_SEED draws a third of them.
  inTurn.each(sampled(cases, 14))(
    'in %s, %i dimensions, are exactly 1/16 beside %f',
    (format, dim, step) => {
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
              expect(row[key]).toBeLessThan(maxima[Math.floor(key / 128)] - 0.01);
        }
      }
    },
  );

  it('are told apart from the regimes without', () => {
    const withSteps = scoreRegimeNames.filter((name) => scoreRegime(name).hasSteps);
    expect(withSteps).toEqual(['steps-below', 'steps-above']);
    for (const name of scoreRegimeNames) {
      const [two, eight] = [2, 8].map((step) =>
        JSON.stringify(plainly(scoreProblem(name, { ...request, step }))),
      );
      expect(two !== eight).toBe(withSteps.includes(name));
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

/**
 * Digests of the problems that docs/theory/trade-offs.md was measured with, as they were made before there
 * was one table of regimes: the documentation can be repeated only while they stay.
 */
const digests: Readonly<Record<ScoreRegimeName, string>> = {
  'normal-1': '975fb4e42549408217652ec5f4648d09ec119e8e395c12ca2274177ffa17dfec',
  'normal-4': '1081ea860c43afd8d7c5338eceffa6fdda0fee5b04c1e25cf03f51023c0ccba7',
  'normal-16': '548b878a50ce9b7285f6d9b3ccd24e18e3bd5a0ab6b0db7ef5c3cfb86a846a99',
  sink: '3b486c47158d796d0b3640a3677efe75854fe435362e75e5b0b06e7c8a5e7f21',
  'student-t': '75088e3ccb212b8b5ec9772cc60e76787473288d879c53a3b27645f7f2360b0f',
  ascending: '862575e9cc7d31211a1aad0bfddf694116b4be566870b0656fa8713f76f6e26f',
  descending: '29a53e13db8c28f9f0334c92dc29e9e6a26b286e5e4006d146076b333d7247c7',
  'steps-below': 'e69234a48eca19fcb2cb2828fed087591dd6ebe21266428f3e0d5cb0d410e1fc',
  'steps-above': 'dd3abf0cb18388940f81b06c4a8056a4560897cb42a9c1197b1aa1b700955753',
  'positive-values': '90e692fb9133c6d5dcf9ee3fd2bd6dbe33e62cee8abddc211962178cdd6f837d',
  'constant-keys': 'e807cc6af2b5e6dc2fece3b4e98ed9677e54481c712eae684bc51312fb81d79b',
};

describe('a seed', () => {
  it.each(scoreRegimeNames)('gives the same problem of %s forever', (name) => {
    const hash = createHash('sha256');
    for (const one of [
      request,
      { queries: 3, keys: 130, dim: 16, seed: 20_260_504, format: 'e4m3', step: 4 },
      { queries: 5, keys: 1, dim: 11, seed: 1, format: 'fp32' },
    ] as const) {
      const { q, k, v, scale } = scoreProblem(name, one);
      for (const { shape, data } of [q, k, v])
        hash
          .update(shape.join())
          .update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      hash.update(Float64Array.of(scale));
    }
    expect(hash.digest('hex')).toBe(digests[name]);
  });
});
