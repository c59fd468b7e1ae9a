import { describe, expect, it } from 'vitest';
import { internalBound } from '../../../src/audit/bounds/index.js';
import {
  correctRow,
  logSumExp,
  predictWeighted,
  scalePrediction,
  softmaxRow,
} from '../../../src/audit/diagnosis/prediction.js';
import { measureRows } from '../../../src/audit/diagnosis/row-damage.js';
import { damagedRows, damageOf, sampleRows } from '../../../src/audit/diagnosis/row-sample.js';
import type { SampleRow } from '../../../src/audit/diagnosis/hypothesis.js';
import { formats, ulp, type FormatName } from '../../../src/formats/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOf, contextOfFault } from '../hypotheses/context.js';
import { Textbook } from '../hypotheses/textbook.js';

const [heads, queries, keys, vDim] = [2, 40, 6, 3];
const problem = (() => {
  const random = pseudorandom(43);
  return filledProblem({ heads, queries, keys, dim: 2, vDim }, () => 2 * random(), {
    causal: true,
  });
})();
const book = new Textbook(problem);
const context = contextOfFault(problem, {}, { format: 'bf16' });
const half = (x: number, format: FormatName = 'bf16') => ulp(formats[format], x) / 2;

/** Σ over the columns of the squared errors that a correct kernel is expected to make of a row of weights. */
function plainNoise(
  { bound }: Pick<SampleRow, 'bound'>,
  weights: ArrayLike<number>,
  values: ArrayLike<number>,
  growth = 1,
): { noise: number; out: number[]; magnitude: number[] } {
  const { weightRounding, typicalWeight, addition, normalisation, floor, keys: n } = bound;
  const out = [0, 0, 0];
  const magnitude = [0, 0, 0];
  let squares = 0;
  for (let j = 0; j < weights.length; j++)
    for (let c = 0; c < vDim; c++) {
      const x = weights[j] * values[j * vDim + c];
      out[c] += x;
      magnitude[c] += Math.abs(x);
      squares += x * x;
    }
  const walk = Math.sqrt(n) * addition;
  const divide = Math.max(normalisation - n * addition, 0) + walk;
  const ofWeights = (weightRounding ** 2 + (growth * typicalWeight) ** 2) * squares;
  const ofColumns = out.map(
    (x, c) =>
      half(x) ** 2 + (walk * magnitude[c]) ** 2 + (divide * x) ** 2 + floor ** 2 / Math.max(n, 1),
  );
  return { noise: (ofWeights + ofColumns.reduce((a, b) => a + b, 0)) / 3, out, magnitude };
}

describe('what a kernel may give for a row', () => {
  it('is the sum of its weights, with the noise and the limits of its bound', () => {
    for (const row of context.sample.filter(({ row: flat }) => flat % 7 === 0)) {
      const values = context.reader.values(row.kv);
      const scores = book.scores(row.row).map((s) => s * 1.1);
      for (const growth of [0.5, 1, 3]) {
        const weighed = softmaxRow(scores, values, growth);
        const seen = scores.filter((s) => s > -Infinity);
        if (seen.length === 0) {
          expect([...weighed.weights, weighed.lse]).toEqual([...scores.map(() => 0), -Infinity]);
          continue;
        }
        const sum = seen.reduce((all, s) => all + Math.exp(s), 0);
        expect(weighed.lse).toBeCloseTo(Math.log(sum), 12);
        expect(logSumExp(scores)).toBe(weighed.lse);
        const { noise, out, magnitude } = plainNoise(
          row,
          weighed.weights,
          values,
          Math.max(growth, 1),
        );
        const predicted = predictWeighted(row, weighed);
        expect(predicted.noise / noise).toBeCloseTo(1, 9);
        expect(predicted.lse).toBe(weighed.lse);
        const weight = Math.expm1(Math.max(growth, 1) * Math.log1p(row.bound.weight));
        out.forEach((x, c) => {
          expect(predicted.out[c]).toBeCloseTo(x, 12);
          const internal = internalBound(
            { ...row.bound, weight },
            x,
            magnitude[c],
            magnitude[c] + Math.abs(x),
          );
          expect(predicted.limit[c] / (internal + half(Math.abs(x) + internal))).toBeCloseTo(1, 9);
        });
        const scaled = scalePrediction(row, predicted, -3, 7);
        expect(scaled.lse).toBe(7);
        expect(scaled.noise).toBe(9 * predicted.noise);
        scaled.out.forEach((x, c) => {
          expect(x).toBe(-3 * predicted.out[c]);
          expect(scaled.limit[c]).toBe(3 * predicted.limit[c] + half(x));
        });
        expect(scalePrediction(row, predicted, 2 ** -9, 0).noise).toBe(2 ** -10 * predicted.noise);
      }
    }
  });

  it('is, of a correct one, the exact output within the bound of its row', () => {
    const { out: exact } = context.input.reference.quantities;
    for (const { row, bound } of context.sample) {
      const { out, limit } = correctRow(context.input, row);
      for (let c = 0; c < vDim; c++) {
        const at = row * vDim + c;
        expect(out[c]).toBe(exact.values[at]);
        const [x, size] = [exact.values[at], exact.magnitude[at]];
        const internal = internalBound(bound, x, size, size + Math.abs(x));
        expect(limit[c]).toBe(bound.keys === 0 ? 0 : internal + half(Math.abs(x) + internal));
      }
    }
  });
});

describe('what rows err by', () => {
  const { out: exact, lse } = book.rows();
  /** An output that errs by so many times the noise of each row, in its first column. */
  const given = (ratio: (row: number) => number) => {
    const { noise } = measureRows(context.input);
    const out = exact.map((x, i) => {
      const row = Math.floor(i / vDim);
      return i % vDim === 0 ? x + Math.sqrt(ratio(row) * noise[row]) : x;
    });
    return contextOf(problem, { out, lse }, { format: 'bf16' });
  };

  it('is Σ error² beside what rounding is expected to make', () => {
    const { input, sample } = given((row) => row);
    const damage = measureRows(input);
    for (const { row, ranges, kv } of sample) {
      const weights = book.scores(row).map((s) => Math.exp(s - book.row(row).lse));
      const { noise } = plainNoise(
        sample[row],
        ranges.length === 0 ? [] : weights,
        context.reader.values(kv),
      );
      if (ranges.length === 0) expect(damage.noise[row]).toBe(0);
      else {
        expect(damage.noise[row] / noise).toBeCloseTo(1, 6);
        expect(damageOf(damage, row)).toBeCloseTo(row, 3);
      }
    }
    const infinite = contextOf(
      problem,
      { out: exact.map((x, i) => (i === 71 * vDim ? NaN : x)), lse },
      { format: 'bf16' },
    );
    expect(measureRows(infinite.input).error[71]).toBe(Infinity);
  });

  it('chooses damaged rows and sound ones beside them', () => {
    const { input, buildRow } = given((row) => (row === 76 ? 90 : 0.5));
    const sample = sampleRows(input, measureRows(input), [76], buildRow, false);
    expect(sample[0]).toMatchObject({ row: 76, damaged: true });
    expect(sample.filter(({ damaged }) => damaged).length).toBe(1);
    const sound = sample.filter(({ damaged }) => !damaged).map(({ row }) => row);
    expect(sound).toContain(75);
    expect(sound).toContain(77);
    expect(new Set(sound).size).toBe(sound.length);
    expect(sound.length).toBeGreaterThan(15);
    const together = sampleRows(input, measureRows(input), [74, 75, 76], buildRow, true);
    expect(together.map(({ row, damaged }) => [row, damaged])).toEqual([
      [74, true],
      [75, true],
      [76, true],
    ]);
  });

  it('makes rows damaged that err by 4 times that, and heads whose rows nearly all err', () => {
    const random = pseudorandom(5);
    const whole = filledProblem(
      { heads, queries, keys: 24, dim: 2, vDim, format: 'fp32' },
      () => 2 * random(),
    );
    const rows = new Textbook(whole).rows();
    const { input: sound } = contextOf(whole, rows, { format: 'bf16' });
    const { noise } = measureRows(sound);
    /** Errors of so many times the noise of a row, by column in proportion to what no correct kernel exceeds. */
    const struck = (ratio: (row: number) => number) => {
      const out = rows.out.map((x, i) => {
        const row = Math.floor(i / vDim);
        const { limit } = correctRow(sound, row);
        return (
          x +
          limit[i % vDim] *
            Math.sqrt((ratio(row) * noise[row]) / limit.reduce((sum, y) => sum + y * y, 0))
        );
      });
      const { input } = contextOf(whole, { out, lse: rows.lse }, { format: 'bf16' });
      return damagedRows(input, measureRows(input), false);
    };
    expect(struck((row) => (row === 50 ? 4.05 : row === 60 ? 2.8 : 0.5))).toEqual([50]);
    const head = Array.from({ length: queries }, (_, i) => queries + i);
    const ofHead = (of: (i: number) => number) => (row: number) =>
      row < queries ? 0.5 : of(row - queries);
    expect(struck(ofHead(() => 1.6))).toEqual(head);
    expect(struck(ofHead(() => 1.4))).toEqual([]);
    // One in ten may err less.
    expect(struck(ofHead((i) => (i < 4 ? 0.1 : 1.6)))).toEqual(head);
    expect(struck(ofHead((i) => (i < 5 ? 0.1 : 1.6)))).toEqual([]);
    expect(struck(ofHead((i) => (i < 4 ? 0.1 : 17)))).toEqual(head.slice(4));
  });

  it('is, where the LSE alone fails, what no bound of it allows', () => {
    const off = lse.map((x, row) => {
      const { bound } = context.sample[row];
      return row === 35
        ? x + 1.01 * (bound.lse + 2 ** -23 * Math.abs(x))
        : row === 36
          ? x + 0.98 * bound.lse
          : row === 37
            ? NaN
            : x;
    });
    const { input } = contextOf(problem, { out: exact, lse: off }, { format: 'bf16' });
    expect(damagedRows(input, measureRows(input), true)).toEqual([35, 37]);
  });
});
