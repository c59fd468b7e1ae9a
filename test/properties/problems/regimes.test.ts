import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  attentionProblem,
  describeRegime,
  fittingRegimes,
  regimeNames,
  type ProblemConstraints,
  type RegimeName,
} from '../../../properties/index.js';
import { decodeProblem, type PlainProblem } from '../../../properties/problems/plain-problem.js';
import { randomValues } from '../../../properties/problems/values.js';
import { regimes } from '../../../properties/problems/regimes/index.js';
import { resolveTiling, usualTiling } from '../../../properties/problems/regimes/regime.js';
import { formats, round, smallestNormal, plainFormats } from '../../../src/formats/index.js';
import { storedOf, storeProblem, type Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { packedProblem } from '../../problem/packed-problem.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const everyFormat = plainFormats;

function sample(constraints: ProblemConstraints, numRuns: number, seed = 42): PlainProblem[] {
  return fc
    .sample(attentionProblem(constraints), { seed, numRuns })
    .map((problem) => ({ ...decodeProblem(problem), form: storedOf(problem)?.form }));
}

/** Scores in nats of the first query head's rows, without masks; fp64. */
function scoresOf({ sizes, values, scale }: PlainProblem): number[][] {
  const { queries, keys, qkDim } = sizes;
  return Array.from({ length: queries }, (_, i) =>
    Array.from({ length: keys }, (_, j) => {
      let sum = 0;
      for (let c = 0; c < qkDim; c++) sum += values.q[i * qkDim + c] * values.k[j * qkDim + c];
      return sum * scale;
    }),
  );
}

const descending = (list: readonly number[]) => [...list].sort((a, b) => b - a);

/** Laws hold head by head: where problems are large, one kv head is enough. */
const oneHead: ProblemConstraints = { batch: { max: 1 }, kvHeads: { max: 1 } };

/** From single numbers to several blocks, with grouped heads and dimensions that differ. */
const shapes: readonly ProblemConstraints[] = [
  {},
  { queries: { max: 2 }, keys: { max: 5 }, qkDim: { max: 2 }, kvHeads: { max: 1 } },
  { queries: { max: 3 }, keys: { max: 400 }, qkDim: { max: 256 }, vDim: { max: 2 }, ...oneHead },
  { queries: { max: 3 }, batch: { min: 2 }, kvHeads: { min: 2 }, groupSize: { min: 2 } },
  { queries: { max: 4 }, tiling: { blockKeys: 16, threshold: 2 }, keys: { max: 70 }, ...oneHead },
];

/** Whether constraints leave room for their regimes. */
function fits(constraints: ProblemConstraints): boolean {
  try {
    return fittingRegimes(constraints).length > 0;
  } catch (error) {
    if (error instanceof RequestError) return false;
    throw error;
  }
}

describe.each(regimeNames)('%s', (name) => {
  const { holds, features = [] } = regimes[name];

  it('holds for all that it draws, in every format and shape, within the format', () => {
    let drawn = 0;
    const each = scaled(1);
    for (const shape of shapes)
      for (const format of everyFormat) {
        const constraints = { ...shape, formats: [format], maximumElements: 2 ** 15, features };
        if (!fits({ ...constraints, regimes: [name] })) continue;
        const tiling = resolveTiling(shape.tiling);
        for (const plain of sample({ ...constraints, regimes: [name] }, each, testSeed)) {
          drawn++;
          expect(holds(plain, tiling)).toBe(true);
          for (const values of Object.values(plain.values))
            for (const x of values)
              if (!(Math.abs(x) <= formats[format].maxFinite)) expect.fail(`${x} in ${format}`);
        }
      }
    expect(drawn).toBeGreaterThan((name === 'one-key' || name === 'one-query' ? 5 : 12) * each);
  });

  inTurn('is drawn at the first attempt more often than not', () => {
    const random = randomValues(5);
    // These are made of features and lengths; their values are any.
    if (features.length > 0 || regimes[name].lengths !== undefined) return;
    for (const plain of sample({ regimes: [name], formats: ['bf16'] }, 4)) {
      const attempts = Array.from({ length: 12 }, () => {
        const request = { sizes: plain.sizes, format: formats.bf16, tiling: usualTiling };
        const { scales = ['default'] } = regimes[name];
        const [scaleKind] = scales;
        const drawn = regimes[name].draw({ ...request, scaleKind: scaleKind!, random });
        const { scale = 1 / Math.sqrt(plain.sizes.qkDim), ...values } = drawn;
        return holds({ ...plain, values, scale }, usualTiling);
      });
      expect(attempts.filter(Boolean).length).toBeGreaterThan(6);
    }
  });

  it('says what it is and what it is for, each in one line', () => {
    for (const text of Object.values(describeRegime(name))) {
      expect(text).toMatch(/^[^\n]{10,100}$/);
      expect(text).not.toMatch(/\.$/);
    }
  });
});

it('a regime that there is not is refused', () => {
  expect(() => describeRegime('flat' as RegimeName)).toThrow(RequestError);
  expect(() => describeRegime('flat' as RegimeName)).toThrow(
    /no regime "flat"; choose from normal,/,
  );
});

describe('problems that are of no special regime', () => {
  const free: readonly RegimeName[] = [
    ...(['normal', 'normal-4', 'normal-16', 'student-t', 'wide-exponents'] as const),
  ];
  const other = regimeNames.filter((name) => !free.includes(name));
  // Scores of at most a few nats, 200 keys: nothing climbs, repeats, underflows or stands out.
  const plain = sample(
    {
      regimes: ['normal'],
      formats: ['fp32'],
      scales: ['default'],
      queries: { min: 3 },
      keys: { min: 260 },
      qkDim: { min: 8, max: 8 },
    },
    1,
  )[0];
  const quiet = { ...plain, values: { ...plain.values, k: plain.values.k.map((x) => x / 4) } };

  it.each(other)('are not taken for %s', (name) => {
    expect(regimes[name].holds(quiet, usualTiling)).toBe(false);
  });

  it.each(other)('are not taken for %s when a NaN is among the scores', (name) => {
    const law = (values: PlainProblem['values']) =>
      regimes[name].holds({ ...quiet, values }, usualTiling);
    const q = quiet.values.q.map(() => NaN);
    if (!['positive-values', 'ones', 'constant-keys', 'subnormal'].includes(name))
      expect(law({ ...quiet.values, q })).toBe(false);
  });
});

describe('what a regime provokes', () => {
  const unmasked = { causal: false, window: false, softcap: false } as const;
  const of = (name: RegimeName, constraints: ProblemConstraints = {}) =>
    sample({ ...unmasked, formats: ['fp32'], ...constraints, regimes: [name] }, 25);

  inTurn('one-hot: all other weights are exactly 0 in fp32', () => {
    for (const plain of of('one-hot', { formats: everyFormat }))
      for (const row of scoresOf(plain)) {
        const [first, ...others] = descending(row);
        for (const score of others) expect(Math.fround(Math.exp(score - first!))).toBe(0);
      }
  });

  it('one-hot: the rows of a head do not all have the same key', () => {
    const hot = of('one-hot', { queries: { min: 12 }, keys: { min: 4 } }).map(
      (plain) => new Set(scoresOf(plain).map((row) => row.indexOf(Math.max(...row)))).size,
    );
    expect(hot.every((keys) => keys === 2)).toBe(true);
  });

  it('repeated-maxima: several weights of exactly 1, others that bf16 does not hold, V one-signed', () => {
    for (const plain of of('repeated-maxima', { formats: ['bf16'], keys: { min: 12 } })) {
      for (const row of scoresOf(plain)) {
        const [first, second, ...others] = descending(row);
        expect(second).toBe(first);
        const lower = others.filter((score) => score < first!);
        expect(lower.length).toBeGreaterThan(row.length / 2);
        const weights = lower.map((score) => Math.exp(score - first!));
        const rounded = weights.filter((weight) => round(formats.bf16, weight) !== weight);
        expect(rounded).toHaveLength(weights.length);
        expect(first! - lower.at(-1)!).toBeLessThan(12);
      }
      expect(new Set(plain.values.v.map(Math.sign)).size).toBe(1);
    }
  });

  it('long-tail: the tail’s weights vanish in e4m3, and yet are a good part of the sum', () => {
    const unit = 2 ** -9;
    for (const plain of of('long-tail'))
      for (const row of scoresOf(plain)) {
        const largest = Math.max(...row);
        const weights = row.map((score) => Math.exp(score - largest));
        const lost = weights.filter((weight) => weight < unit / 2);
        expect(lost.length).toBeGreaterThan(20);
        const sum = weights.reduce((a, b) => a + b, 0);
        expect(sum).toBeGreaterThan(1.15);
      }
  });

  it('negative-scores: below −40 nats, within some 20 of one another, down to −400', () => {
    for (const plain of of('negative-scores', { formats: everyFormat, qkDim: { min: 2 } }))
      for (const row of scoresOf(plain)) {
        expect(Math.max(...row)).toBeLessThanOrEqual(-40);
        expect(Math.min(...row)).toBeGreaterThan(-500);
        expect(Math.max(...row) - Math.min(...row)).toBeLessThan(25);
      }
  });

  inTurn('integer-scores: every weight is a power of two', () => {
    for (const plain of of('integer-scores', { formats: everyFormat }))
      for (const row of scoresOf({ ...plain, scale: Math.fround(plain.scale * Math.LOG2E) }))
        for (const score of row) expect(Number.isInteger(score)).toBe(true);
  });

  it('near-overflow: raw scores overflow fp16, at the default scale or at a few nats', () => {
    const problems = of('near-overflow', { formats: everyFormat });
    const largest = problems.map(({ scale, ...plain }) => {
      const raw = Math.max(
        ...scoresOf({ ...plain, scale: 1 })
          .flat()
          .map(Math.abs),
      );
      return { raw, scaled: raw * scale };
    });
    // The largest is looked for in one head of several only.
    expect(largest.filter(({ raw }) => raw > 65504).length).toBeGreaterThan(20);
    expect(largest.some(({ scaled }) => scaled > 1000)).toBe(true);
    expect(largest.filter(({ scaled }) => scaled < 100).length).toBeGreaterThan(5);
  });

  it('subnormal: V is, Q and K sometimes are', () => {
    for (const format of everyFormat) {
      const problems = of('subnormal', { formats: [format] });
      const isSubnormal = (values: Float64Array) =>
        values.every((x) => x !== 0 && Math.abs(x) < smallestNormal(formats[format]));
      expect(problems.every(({ values }) => isSubnormal(values.v))).toBe(true);
      const queries = problems.filter(({ values }) => isSubnormal(values.q)).length;
      expect(queries).toBeGreaterThan(0);
      expect(queries).toBeLessThan(problems.length);
    }
  });

  it.each([
    ['steps-below', -1],
    ['steps-above', 1],
  ] as const)(
    '%s: block maxima differ by 1/16 beside the threshold, in both orders',
    (name, side) => {
      const tiling = { blockKeys: 32, threshold: 3 };
      const signs = of(name, { tiling, formats: ['e4m3', 'bf16'] }).map((plain) => {
        const steps = scoresOf({ ...plain, scale: 1 }).flatMap((row) => {
          const block = (b: number) => Math.max(...row.slice(32 * b, 32 * (b + 1)));
          return block(1) - block(0);
        });
        expect(new Set(steps.map(Math.abs))).toEqual(new Set([3 + side / 16]));
        return Math.sign(steps[0]);
      });
      expect(new Set(signs)).toEqual(new Set([1, -1]));
    },
  );

  it('sink, ascending and descending: where the large scores are', () => {
    const constraints = { keys: { min: 60, max: 60 }, qkDim: { min: 16 } };
    const mean = (list: readonly number[]) => list.reduce((a, b) => a + b, 0) / list.length;
    const excess = (name: RegimeName, part: (row: number[]) => number) =>
      mean(of(name, constraints).flatMap(scoresOf).map(part));
    const halves = (row: number[]) => mean(row.slice(30)) - mean(row.slice(0, 30));
    expect(excess('sink', ([first, ...rest]) => first! - mean(rest))).toBeGreaterThan(6);
    expect(excess('ascending', halves)).toBeGreaterThan(11);
    expect(excess('descending', halves)).toBeLessThan(-11);
  });

  it('outlier-channel: one channel is far larger; wide-exponents: both ends are reached', () => {
    for (const { values, sizes } of of('outlier-channel', {
      qkDim: { min: 4 },
      keys: { min: 8 },
    })) {
      const sums = Array.from({ length: sizes.qkDim }, (_, c) =>
        values.k.reduce((sum, x, i) => (i % sizes.qkDim === c ? sum + Math.abs(x) : sum), 0),
      );
      const [first, second] = descending(sums);
      expect(first! / second!).toBeGreaterThan(4);
    }
    for (const name of everyFormat) {
      const { minExponent, maxExponent } = formats[name];
      const exponents = of('wide-exponents', { formats: [name], queries: { max: 9 } })
        .flatMap(({ values }) => [...values.k])
        .filter((x) => x !== 0)
        .map((x) => Math.log2(Math.abs(x)));
      const span = maxExponent - minExponent;
      expect(exponents.reduce((a, b) => Math.min(a, b))).toBeLessThan(
        minExponent + 0.05 * span + 1,
      );
      expect(exponents.reduce((a, b) => Math.max(a, b))).toBeGreaterThan(
        maxExponent - 0.05 * span - 1,
      );
    }
  });

  it('cancelling-values: exactly and to within an ulp; large and tiny: spread of the scores', () => {
    const residues = of('cancelling-values', { vDim: { min: 1, max: 1 } }).map(({ values }) =>
      Math.abs(values.v[0] + values.v[1]),
    );
    expect(residues.some((x) => x === 0)).toBe(true);
    expect(residues.some((x) => x > 0)).toBe(true);
    const spread = (name: RegimeName) =>
      of(name, { scales: ['default'] }).map((plain) =>
        Math.max(...scoresOf(plain).flat().map(Math.abs)),
      );
    expect(spread('large').filter((x) => x > 5).length).toBeGreaterThan(18);
    for (const x of spread('tiny')) expect(x).toBeLessThan(5);
  });
});

describe('what is a step of the maximum', () => {
  const tiling = { blockKeys: 2, threshold: 3 };

  /** A problem of one head whose queries see levels in log2, each times the query. */
  function levelled(levels: readonly number[], queries: readonly number[] = [1]): PlainProblem {
    const keys = levels.length;
    return {
      sizes: {
        batch: 1,
        kvHeads: 1,
        groupSize: 1,
        queries: queries.length,
        keys,
        qkDim: 1,
        vDim: 1,
      },
      formats: { q: 'fp32', k: 'fp32', v: 'fp32' },
      values: {
        q: Float64Array.from(queries),
        k: Float64Array.from(levels),
        v: new Float64Array(keys),
      },
      scale: Math.LN2,
      causal: false,
      window: null,
      softcap: null,
    };
  }

  it.each([
    ['steps-below', 3 - 1 / 16, 3 + 1 / 16],
    ['steps-above', 3 + 1 / 16, 3 - 1 / 16],
  ] as const)('%s: neighbouring blocks whose maxima differ by it', (name, step, other) => {
    const { holds } = regimes[name];
    const isOne = (levels: readonly number[], queries?: readonly number[]) =>
      holds(levelled(levels, queries), tiling);
    expect(isOne([0, -5, step, -9])).toBe(true);
    expect(isOne([-5, 1, -9, 1 + step])).toBe(true);
    expect(isOne([0, -5, step])).toBe(true);
    for (const wrong of [other, 3, step + 2 ** -19, step - 2 ** -19, 0, -other])
      expect(isOne([0, -5, wrong, -9])).toBe(false);
    expect(isOne([0, -5, step + 2 ** -21, -9])).toBe(true);
    // Keys that are not their block's largest, and blocks with another one between them.
    expect(isOne([0, 1, step, -9])).toBe(false);
    expect(isOne([0, -5, 1, -5, step, -5])).toBe(false);
    expect(isOne([0, step])).toBe(false);
    // In some row, the last one here.
    expect(isOne([0, -5, step, -9], [0, 0.5, 1])).toBe(true);
    expect(isOne([0, -5, step, -9], [0, 0.5])).toBe(false);
    expect(holds({ ...levelled([0, -5, step, -9]), scale: 1 }, tiling)).toBe(false);
  });

  it('partly-filled-pages, half-filled-paged-tiles: by the keys of a sequence with queries', () => {
    const lengths = (queries: number, ...keys: number[]) =>
      packedProblem(
        keys.map((count, i) => [i === 0 ? queries : 0, count] as const),
        'bf16',
      );
    const isOf = (name: RegimeName, pageSize: number, problem: Problem) => {
      const { stored } = storeProblem(problem, {
        queries: { kind: 'packed' },
        keys: { kind: 'paged', pageSize },
      });
      return regimes[name].holds({ ...decodeProblem(problem), form: stored.form }, usualTiling);
    };
    const paged = (keys: number, queries = 1) => [
      isOf('partly-filled-pages', 16, lengths(queries, keys, 17)),
      isOf('half-filled-paged-tiles', 16, lengths(queries, keys, 64)),
    ];
    expect(paged(64)).toEqual([false, true]);
    expect(paged(192)).toEqual([false, true]);
    expect(paged(63)).toEqual([true, false]);
    expect(paged(128)).toEqual([false, false]);
    // Of a sequence without queries nobody reads a key.
    expect(paged(64, 0)).toEqual([false, false]);
    expect(isOf('partly-filled-pages', 1, lengths(1, 63))).toBe(false);
    const packed = decodeProblem(lengths(1, 64));
    for (const name of ['partly-filled-pages', 'half-filled-paged-tiles'] as const)
      expect(regimes[name].holds(packed, usualTiling)).toBe(false);
  });

  it.each(['steps-below', 'steps-above'] as const)('%s: in the order of the tiling', (name) => {
    const step = name === 'steps-below' ? 3 - 1 / 16 : 3 + 1 / 16;
    const [rising, falling] = [levelled([0, -5, step, -9]), levelled([step, -9, 0, -5])];
    const { holds } = regimes[name];
    const first = { ...tiling, order: 'first-to-last' } as const;
    const last = { ...tiling, order: 'last-to-first' } as const;
    expect([rising, falling].map((plain) => holds(plain, first))).toEqual([true, false]);
    expect([rising, falling].map((plain) => holds(plain, last))).toEqual([false, true]);
    expect([rising, falling].map((plain) => holds(plain, tiling))).toEqual([true, true]);
  });
});
