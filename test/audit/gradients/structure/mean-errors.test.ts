import { describe, expect, it } from 'vitest';
import { levels } from '../../../../oracles/index.js';
import { outputRounding } from '../../../../src/audit/bounds/index.js';
import {
  measureMeanErrors,
  measureWeightErrors,
} from '../../../../src/audit/gradients/structure/mean-errors.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';
import { drawFrom } from '../definitions/random-pairs.js';

const [batch, heads, kvHeads, queries, keys, dim, vDim] = [2, 4, 2, 3, 5, 3, 2];
const rows = batch * heads * queries;
const kvRows = batch * kvHeads * keys;

type Measured = Parameters<typeof measureMeanErrors>[2];
type Premises = Parameters<typeof measureMeanErrors>[3];

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

/** A problem with sinks, and numbers in place of what is measured: each row its own sizes, some special. */
function made(seed: number, changes: Partial<Problem> = {}) {
  const { between, count } = drawFrom(seed);
  const numbers = (length: number, low: number, high: number) =>
    Float64Array.from({ length }, () => between(low, high));
  const random = bellShaped(seed);
  const sink = {
    logits: { format: 'fp64', shape: [heads], data: numbers(heads, -1, 1) } as const,
    inLse: true,
  };
  const frame = { batch, heads, kvHeads, queries, keys, dim, vDim };
  const problem = filledProblem(frame, random, { causal: true, sink, ...changes });
  const maximum = numbers(rows, -1, 1);
  const measured = {
    reference: {
      level: Uint8Array.from({ length: rows }, () => count(3) + levels.length - 3),
      maximum,
      // Of some rows as large as the maximum: P is 1 at most, whatever the roundings of the two.
      denominator: maximum.map((x, row) => (row % 3 === 0 ? x - 2 ** -10 : x + between(0, 2))),
      quantities: {
        out: { values: numbers(rows * vDim, -2, 2), magnitude: numbers(rows * vDim, 1, 2) },
      },
    },
    mean: { values: numbers(rows, -1, 1), magnitude: numbers(rows, 0.5, 2) },
    gradients: { dk: { exact: { values: numbers(kvRows * dim, -2, 2) } } },
    weightVariance: numbers(rows, 0.001, 0.1),
  };
  return { problem, dout: numbers(rows * vDim, -1, 1), measured, between };
}

/** Premises so coarse that each of them shows. */
const premises = {
  p: 'e4m3',
  o: 'e4m3',
  dp: 'bf16',
  scores: 'e5m2',
  accumulation: 0.03,
} as unknown as Premises;
const [ofP, ofScores] = [2 ** -4, 2 ** -3];

/** The weights of a row by their formula: its keys up to the diagonal, and the sink. */
function weightsOf(problem: Problem, row: number): number[] {
  const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
  const head = Math.floor(row / queries);
  const logit = decodeTensor(problem.sink!.logits)[head % heads];
  const first = Math.floor(head / 2) * keys;
  const last = (row % queries) + keys - queries;
  const sizes = upTo(keys).map((key) => {
    const score = upTo(dim).reduce(
      (sum, c) => sum + q[row * dim + c] * k[(first + key) * dim + c],
      0,
    );
    return key <= last ? Math.exp(score * problem.scale) : 0;
  });
  const total = sizes.reduce((sum, x) => sum + x, Math.exp(logit));
  return sizes.map((x) => x / total);
}

/** The variance of a row's D, by what a kernel rounds. */
function varianceOf(
  { problem, dout, measured }: ReturnType<typeof made>,
  row: number,
  ofDp: number,
) {
  const { reference, mean } = measured;
  if (levels[reference.level[row]] === 'special') return 0;
  const v = decodeTensor(problem.v);
  const first = Math.floor(row / queries / 2) * keys;
  const heaviest = Math.min(1, Math.exp(reference.maximum[row] - reference.denominator[row]));
  let [sum, sizes, reach] = [0, 0, 0];
  for (let c = 0; c < vDim; c++) {
    const at = row * vDim + c;
    const { values, magnitude } = reference.quantities.out;
    const largest = Math.max(...upTo(keys).map((key) => Math.abs(v[(first + key) * vDim + c])));
    sum += (dout[at] * outputRounding('e4m3', values[at], 0)) ** 2;
    sum += dout[at] ** 2 * ofP ** 2 * heaviest * magnitude[at] * largest;
    sizes += Math.abs(dout[at] * values[at]);
    reach += Math.abs(dout[at]) * largest;
  }
  return (
    sum +
    ofDp * heaviest * mean.magnitude[row] * reach +
    (vDim * premises.accumulation * sizes) ** 2
  );
}

/** The effects on a head of K and V, written down plainly. */
function plainly(of: ReturnType<typeof made>, kvHead: number, ofDp: number) {
  const { problem, measured } = of;
  const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
  const columns = upTo(dim).map(() => 0);
  const patterns = [measured.gradients.dk.exact.values, k].map((numbers) =>
    upTo(keys).map((key) =>
      [...numbers].slice((kvHead * keys + key) * dim, (kvHead * keys + key + 1) * dim),
    ),
  );
  const longest = patterns.map((ofKeys) => Math.max(...ofKeys.map((one) => Math.hypot(...one))));
  const along = [0, 0];
  for (let row = kvHead * 2 * queries; row < (kvHead + 1) * 2 * queries; row++) {
    const variance = varianceOf(of, row, ofDp);
    // All dT of a row are too large alike: Σ |dT| ≤ 2 Σ P|dP|.
    const ofLse = (2 * measured.mean.magnitude[row]) ** 2 * measured.weightVariance[row];
    const scaled = upTo(dim).map((c) => problem.scale * q[row * dim + c]);
    scaled.forEach((x, c) => {
      if (Number.isFinite(x)) columns[c] += (variance + ofLse) * x ** 2;
    });
    const weights = weightsOf(problem, row);
    patterns.forEach((ofKeys, i) => {
      const projected = ofKeys.reduce(
        (sum, one, key) => sum + weights[key] * one.reduce((all, x, c) => all + x * scaled[c], 0),
        0,
      );
      along[i] += variance * projected ** 2 + ofLse * (Math.hypot(...scaled) * longest[i]) ** 2;
    });
  }
  return {
    columns: columns.map(Math.sqrt),
    norm: Math.sqrt(columns.reduce((sum, x) => sum + x, 0)),
    slope: Math.sqrt(along[0]),
    pairing: Math.sqrt(along[1]),
  };
}

const isNear = (x: number, y: number) => Math.abs(x - y) <= 2 ** -14 * Math.abs(y);
const seeds = upTo(8).map((i) => (testSeed % 1_000_003) + 31 * i);

describe('the effect of errors of D and of the LSE on dK', () => {
  it.each([
    ['written in a short format', 'bf16', (2 ** -8 + ofScores) ** 2 + ofP ** 2],
    ['not rounded', 'fp32', (2 ** -24 + ofScores) ** 2],
  ] as const)('is that of each row, of its weights and its sizes: dP is %s', (_, dp, ofDp) => {
    for (const seed of seeds) {
      const of = made(seed);
      const found = measureMeanErrors(of.problem, of.dout, of.measured as unknown as Measured, {
        ...premises,
        dp,
      });
      for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++) {
        const wanted = plainly(of, kvHead, ofDp);
        const ofColumns = found.columns.subarray(kvHead * dim, (kvHead + 1) * dim);
        wanted.columns.forEach((x, c) => expect(isNear(ofColumns[c], x)).toBe(true));
        expect(isNear(found.norm[kvHead], wanted.norm)).toBe(true);
        expect(isNear(found.slope![kvHead], wanted.slope)).toBe(true);
        expect(isNear(found.pairing![kvHead], wanted.pairing)).toBe(true);
      }
    }
  });

  it('along a pattern is unknown of a sample of keys, and where dK is not finite', () => {
    const { problem, dout, measured } = made(seeds[0]);
    const { values } = measured.gradients.dk.exact;
    for (const exact of [values.slice(dim), values.with(4, NaN), values.with(0, Infinity)]) {
      const of = { ...measured, gradients: { dk: { exact: { values: exact } } } };
      const found = measureMeanErrors(problem, dout, of as unknown as Measured, premises);
      const known = measureMeanErrors(problem, dout, measured as unknown as Measured, premises);
      expect(found).toEqual({ ...known, slope: null, pairing: null });
    }
  });

  it('leaves out what is infinite in Q, and is infinite where it is unknown', () => {
    const of = made(seeds[1]);
    const { problem, dout, measured } = of;
    measured.gradients.dk.exact.values[0] = NaN;
    const q = decodeTensor(problem.q);
    q[dim + 1] = Infinity;
    const planted = { ...problem, q: { format: 'fp64', shape: problem.q.shape, data: q } } as const;
    const given = measured as unknown as Measured;
    const found = measureMeanErrors(planted, dout, given, premises);
    const ofDp = (2 ** -8 + ofScores) ** 2 + ofP ** 2;
    const { columns, norm } = plainly({ ...of, problem: planted }, 0, ofDp);
    columns.forEach((x, c) => expect(isNear(found.columns[c], x)).toBe(true));
    expect(isNear(found.norm[0], norm)).toBe(true);

    measured.weightVariance[0] = NaN;
    const unknown = measureMeanErrors(planted, dout, given, premises);
    expect([...unknown.columns.subarray(0, dim), unknown.norm[0]]).toEqual(
      upTo(dim + 1).map(() => Infinity),
    );
    expect(unknown.columns.subarray(dim)).toEqual(found.columns.subarray(dim));
  });
});

it('the effect of errors of the LSE on dV leaves out what is infinite in dO', () => {
  const { problem, dout, measured } = made(seeds[2]);
  const known = measureWeightErrors(problem, dout, measured);
  const without = measureWeightErrors(problem, dout.with(3, 0), measured);
  for (const x of [NaN, -Infinity])
    expect(measureWeightErrors(problem, dout.with(3, x), measured)).toEqual(without);
  expect(without.columns[1]).toBeLessThan(known.columns[1]);
  expect(without.columns[0]).toBe(known.columns[0]);
});
