import { describe, expect, it } from 'vitest';
import {
  createFa4Forward,
  exp2Polynomial,
  techniques,
  usesPolynomial,
  type Fa4Configuration,
  type Technique,
} from '../../../../kernels/index.js';
import { decode, encode, formats, round } from '../../../../src/formats/index.js';
import { exp2ApproxFtz, rcpApproxFtz } from '../../../../src/hardware/index.js';
import type { Problem } from '../../../../src/problem/index.js';
import { singleHead, type Rows } from '../../../setup/problems.js';
import { everything, nothing, runAttributed } from './run-attributed.js';

const { bf16, fp32 } = formats;

/** A scale whose product with log2 e is 1, so that scores are exponents. */
const unitScale = 1 / Math.LOG2E;

/** One query, whose scores and exponents are the keys' products with it. */
function problemOf(
  query: readonly number[],
  keys: Rows,
  values: Rows = keys.map(() => [1]),
): Problem {
  return singleHead('bf16', { q: [query], k: keys, v: values }, { scale: unitScale });
}

const hardwareOnly: Partial<Fa4Configuration> = {
  exp2: { frequency: 0, reserve: 4, startFragment: 0, degree: 3 },
};
/** All fragments of 32 but the last. */
const polynomialOnly: Partial<Fa4Configuration> = {
  exp2: { frequency: 32, reserve: 32, startFragment: 0, degree: 3 },
};

function only(
  technique: Technique,
  problem: Problem,
  configuration: Partial<Fa4Configuration> = hardwareOnly,
) {
  const { outputs, rowSums } = runAttributed(
    problem,
    [nothing, new Set([technique])],
    configuration,
  );
  return { out: outputs[1], exactOut: outputs[0], sum: rowSums[1][0], exactSum: rowSums[0][0] };
}

/**
 * A key with the exact score 4 + 2^-30 and the emulated score 4: what comes after the scores is no
 * fp32 number, but the nearest one is an operand on which the technique makes no error.
 */
const inexactScore = problemOf([2, 2 ** -15], [[2, 2 ** -15]], [[3, -0.5]]);

/** Maxima 3, then 8 in the block visited next, so that α = 2^-5; other weights are irrational. */
const integerRescale = problemOf(
  [1],
  Array.from({ length: 40 }, (_, j) => [j === 0 ? 8 : j === 39 ? 3 : 0.5 + (j % 3)]),
  Array.from({ length: 40 }, (_, j) => [1 + (j % 5)]),
);

/** The key with the inexact score in the block visited first, then a block that adds next to nothing. */
const inexactStart = problemOf(
  [2, 2 ** -15],
  Array.from({ length: 33 }, (_, j) => (j === 32 ? [2, 2 ** -15] : [-500, 0])),
  Array.from({ length: 33 }, () => [3, -0.5]),
);

/** l = 1 + 2^-40.5, for which the nearest fp32 number is 1. */
const nearlyOne = problemOf([1], [[0], [-40.5]], [[1], [3]]);

describe('a technique that makes no error on the nearest operands changes nothing', () => {
  const offset = { maxOffset: 4 };
  const cases: readonly (readonly [Technique, Problem, Partial<Fa4Configuration>])[] = [
    ['scale-subtract', inexactScore, hardwareOnly],
    ['exp2-hardware', inexactScore, { ...hardwareOnly, ...offset }],
    ['exp2-polynomial', inexactScore, { ...polynomialOnly, ...offset }],
    ['rescale', integerRescale, { ...hardwareOnly, rescaleThreshold: 0, blockKeys: 32 }],
    ['pv-accumulate', inexactScore, hardwareOnly],
    ['row-sum', inexactScore, hardwareOnly],
    ['pv-accumulate', inexactStart, { ...hardwareOnly, blockKeys: 32 }],
    ['row-sum', inexactStart, { ...hardwareOnly, blockKeys: 32 }],
    ['normalise', nearlyOne, hardwareOnly],
  ];
  it.each(cases)('%s', (technique, problem, configuration) => {
    const { out, exactOut, sum, exactSum } = only(technique, problem, configuration);
    expect(exactSum).not.toBe(Math.fround(exactSum));
    expect(Math.abs(sum / exactSum - 1)).toBeLessThan(2 ** -50);
    out.forEach((x, i) => expect(Math.abs(x / exactOut[i] - 1)).toBeLessThan(2 ** -50));
  });

  it('qk-accumulate', () => {
    const { out, exactOut } = only('qk-accumulate', integerRescale);
    expect(out).toEqual(exactOut);
  });

  it('p-round, where the weights are powers of two', () => {
    const { out, exactOut } = only('p-round', problemOf([1], [[3], [1], [-4]], [[1], [5], [7]]));
    expect(out).toEqual(exactOut);
  });
});

describe('the error of a technique alone', () => {
  it("qk-accumulate: the fused sum's truncated product", () => {
    // The maximum in use is the emulated 4, so that the exact weight is 2^(2^-30).
    const { sum, exactSum } = only('qk-accumulate', inexactScore);
    expect(sum).toBe(1);
    expect(Math.abs(exactSum - 1 - 2 ** -30 * Math.LN2)).toBeLessThan(2 ** -52);
  });

  // At this scale 3 − m·c differs when m·c is not rounded before.
  it.each([0, 3])('scale-subtract: the roundings of m·c, c and the sums, offset %i', (offset) => {
    const scale = 0.301953125;
    const problem = { ...problemOf([1], [[0.8125], [0.3125]]), scale };
    const c = Math.fround(Math.fround(scale) * Math.fround(Math.LOG2E));
    const bias = Math.fround(offset - Math.fround(0.8125 * c));
    const weight = (s: number): number => 2 ** Math.fround(s * c + bias);
    const { sum } = only('scale-subtract', problem, { ...hardwareOnly, maxOffset: offset });
    expect(Math.abs(sum / (weight(0.8125) + weight(0.3125)) - 1)).toBeLessThan(2 ** -50);
  });

  it.each([
    ['exp2-hardware', hardwareOnly, (x: number) => decode(fp32, exp2ApproxFtz(encode(fp32, x)))],
    ['exp2-polynomial', polynomialOnly, (x: number) => exp2Polynomial(x, 3)],
  ] as const)(
    '%s: its relative error at the nearest fp32 number',
    (technique, configuration, exp2) => {
      // c = 2^-1·(1 + 2^-26): no exponent is an fp32 number.
      const scale = (unitScale / 2) * (1 + 2 ** -26);
      const scores = [5, 3.25, -1.625, -7.75];
      const problem = {
        ...problemOf(
          [1],
          scores.map((s) => [s]),
        ),
        scale,
      };
      const { sum, exactSum } = only(technique, problem, configuration);
      const exponents = scores.map((s) => (s - 5) * (scale * Math.LOG2E));
      const expected = exponents.map(
        (x) => 2 ** x * (exp2(Math.fround(x)) / 2 ** Math.fround(x) - 1),
      );
      const error = expected.reduce((a, b) => a + b, 0);
      expect(Math.abs(error)).toBeGreaterThan(2 ** -30);
      expect(Math.abs(sum - exactSum - error)).toBeLessThan(2 ** -50);
    },
  );

  it('the exp2 techniques take each its own columns', () => {
    const pattern = { frequency: 10, reserve: 4, startFragment: 1, degree: 3 as const };
    // The largest score in the last fragment; one other key at a time.
    for (const j of [0, 31, 32, 37, 38, 39, 41, 42, 48, 95, 96, 126]) {
      const scores = Array.from({ length: 128 }, (_, i) => [
        i === 127 ? 0 : i === j ? -0.625 : -200,
      ]);
      const runs = (technique: Technique) =>
        only(technique, problemOf([1], scores), { exp2: pattern });
      const isSoftware = usesPolynomial(pattern, Math.floor(j / 32), j % 32);
      const moves = (technique: Technique): boolean => {
        const { sum, exactSum } = runs(technique);
        return Math.abs(sum - exactSum) > 2 ** -40;
      };
      expect(moves('exp2-polynomial'), `column ${j}`).toBe(isSoftware);
      expect(moves('exp2-hardware'), `column ${j}`).toBe(!isSoftware);
    }
  });

  it('p-round: each weight in the product, none in the row sum', () => {
    const scores = [0, -0.3, -1.7, -5.1].map((s) => round(bf16, s));
    const values = [1, -2, 3, 0.5];
    const problem = problemOf(
      [1],
      scores.map((s) => [s]),
      values.map((v) => [v]),
    );
    const { out, sum, exactSum } = only('p-round', problem);
    const l = scores.reduce((total, s) => total + 2 ** s, 0);
    const o = scores.reduce((total, s, j) => total + round(bf16, 2 ** s) * values[j], 0);
    expect(sum).toBe(exactSum);
    expect(Math.abs(out[0] - o / l)).toBeLessThan(2 ** -50);
  });

  it('normalise: the reciprocal, rounded as the product is', () => {
    const problem = problemOf([1], [[0], [0], [0]], [[1], [1], [5]]);
    const { out } = only('normalise', problem);
    const reciprocal = decode(fp32, rcpApproxFtz(encode(fp32, 3)));
    expect(out[0]).toBe(Math.fround(7 * reciprocal));
  });

  it('row-sum: four packed accumulators, then their tree', () => {
    // 1 + 2^-24 + 2^-24: lost where 1 is in the accumulator, kept where the small ones meet first.
    const sumOf = (places: readonly number[]): number => {
      const keys = Array.from({ length: 32 }, (_, j) => [
        j === 0 ? 0 : places.includes(j) ? -24 : -200,
      ]);
      return only('row-sum', problemOf([1], keys), { ...hardwareOnly, blockKeys: 32 }).sum;
    };
    expect(sumOf([8, 16])).toBe(1);
    expect(sumOf([1, 9])).toBe(1 + 2 ** -23);
    expect(sumOf([4, 12])).toBe(1 + 2 ** -23);
    expect(sumOf([2, 4])).toBe(1);
    expect(sumOf([4, 6])).toBe(1 + 2 ** -23);
  });

  it('output-round: to the format', () => {
    const problem = problemOf([1], [[0], [-1.5]], [[1], [1 / 3]]);
    const { out, exactOut } = only('output-round', problem);
    expect(out[0]).toBe(round(bf16, exactOut[0]));
    expect(out[0]).not.toBe(exactOut[0]);
  });

  it('rescale: α by the unit, in the row sum and the output', () => {
    const keys = Array.from({ length: 33 }, (_, j) => [j === 0 ? 2.625 : j === 32 ? 0 : -200]);
    const values = keys.map((_, j) => [j === 32 ? 3 : 0]);
    const problem = problemOf([1], keys, values);
    const { out, sum } = only('rescale', problem, {
      ...hardwareOnly,
      blockKeys: 32,
      rescaleThreshold: 0,
    });
    const alpha = decode(fp32, exp2ApproxFtz(encode(fp32, -2.625)));
    expect(alpha).not.toBe(2 ** -2.625);
    const rest = Array.from({ length: 31 }, () => 2 ** -202.625).reduce((a, b) => a + b, 1);
    expect(Math.abs(sum - (alpha + rest))).toBeLessThan(2 ** -50);
    expect(Math.abs(out[0] - Math.fround(3 * alpha) / sum)).toBeLessThan(2 ** -50);
  });
});

describe('the path', () => {
  const keys = Array.from({ length: 33 }, (_, j) => [j === 0 ? 2.625 : j === 32 ? 0 : -200]);

  it('lags up to the threshold, and says by how much', () => {
    const problem = problemOf([1], keys);
    const at = (rescaleThreshold: number) =>
      runAttributed(problem, [nothing], { ...hardwareOnly, blockKeys: 32, rescaleThreshold });
    for (const threshold of [8, 2.625])
      expect(at(threshold)).toMatchObject({
        maxima: Float64Array.of(0),
        lags: Float64Array.of(2.625),
        largestKeys: Int32Array.of(0),
        largestExponents: Float64Array.of(2.625),
      });
    for (const threshold of [0, 2])
      expect(at(threshold)).toMatchObject({
        maxima: Float64Array.of(2.625),
        lags: Float64Array.of(0),
        largestKeys: Int32Array.of(0),
        largestExponents: Float64Array.of(0),
      });
  });

  it('takes a negative scale where nothing is masked and nothing is rescaled', () => {
    const scores = Array.from({ length: 64 }, (_, j) => [Math.sin(j)]);
    const problem = { ...problemOf([1], scores, scores), scale: -unitScale };
    const { outputs } = runAttributed(problem, [nothing], { ...hardwareOnly, blockKeys: 32 });
    const exact = scores.map(([s]) => round(bf16, s));
    const weights = exact.map((s) => 2 ** -s);
    const total = weights.reduce((a, b) => a + b, 0);
    const mean = exact.reduce((sum, s, j) => sum + s * weights[j], 0) / total;
    expect(Math.abs(outputs[0][0] - mean)).toBeLessThan(2 ** -48);
  });

  it('names the largest weight, the first that is met among equals, with its offset', () => {
    const equals = Array.from({ length: 40 }, (_, j) => [[3, 5, 35, 38].includes(j) ? 2 : 0]);
    const overrides = { ...hardwareOnly, blockKeys: 32, maxOffset: 4 };
    expect(runAttributed(problemOf([1], equals), [nothing], overrides)).toMatchObject({
      largestKeys: Int32Array.of(35),
      largestExponents: Float64Array.of(4),
    });
  });

  it('leaves an output alone whose α is no number, as the GPU does', () => {
    // An infinite score in a column of the polynomial, which drops the NaN that it makes of it.
    const keys = Array.from({ length: 96 }, (_, j) => [j === 64 ? Infinity : 0.5]);
    const problem = problemOf([1], keys);
    const overrides = {
      blockKeys: 64,
      rescaleThreshold: 0,
      exp2: { frequency: 32, reserve: 32, startFragment: 0, degree: 3 as const },
    };
    const [out] = runAttributed(problem, [everything], overrides).outputs;
    const gpu = createFa4Forward(problem, { configuration: overrides }).runTile(0).out;
    expect(out).toEqual(Float64Array.of(decode(bf16, gpu[0])));
    expect(out).not.toEqual(Float64Array.of(NaN));
  });

  it('is the same whatever is emulated', () => {
    const problem = problemOf([1], keys);
    const overrides = { ...hardwareOnly, blockKeys: 32, rescaleThreshold: 2 };
    const paths = techniques.map((technique) => {
      const { maxima, lags } = runAttributed(problem, [new Set([technique])], overrides);
      return { maxima, lags };
    });
    for (const path of paths) expect(path).toEqual(paths[0]);
  });
});
