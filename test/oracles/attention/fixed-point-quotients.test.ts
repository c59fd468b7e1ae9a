import { expect, it } from 'vitest';
import {
  arbitraryLevel,
  fixedPointExponents,
  ratioUp,
  weightError,
  withSink,
} from '../../../oracles/attention/arbitrary-level.js';
import { operandRow } from '../../../oracles/attention/operand.js';
import { exactScores } from '../../../oracles/attention/scores.js';
import { createExp2 } from '../../../oracles/fixed-point.js';
import { randomValues } from '../../../properties/problems/values.js';
import { float64FromRational, rationalOfFloat64 } from '../../../src/arith/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { singleHead } from '../../setup/problems.js';
import { onlyRow, pairedProblem } from './paired-rows.js';

const u = 2 ** -53;

it('a ratio is bounded from above by next to nothing more than it is, also among the subnormals', () => {
  const random = randomValues(testSeed);
  expect(ratioUp(0n, 3n, 5)).toBe(0);
  for (let run = 0; run < scaled(300); run++) {
    const [numerator, denominator] = [0, 0].map(() =>
      BigInt(random.integer(1, 2 ** random.integer(1, 50))),
    );
    const exponent = random.integer(run % 2 === 0 ? -1130 : -60, run % 2 === 0 ? -1030 : 60);
    const bound = rationalOfFloat64(ratioUp(numerator, denominator, exponent));
    // Both times 2^1200, so that all are whole numbers.
    const exact = numerator << BigInt(1200 + exponent);
    const found = (bound.numerator * denominator) << 1200n;
    expect(found >= exact * bound.denominator).toBe(true);
    const most = exact + (exact >> 49n) + (denominator << BigInt(1200 - 1073));
    expect(found <= most * bound.denominator).toBe(true);
  }
});

it('O has the radius of the farthest quotient that its sums may stand for', () => {
  const sinks = [-6, 0, 9].map((logit) => ({ sink: { logit, inLse: true } }));
  const settings = [
    {},
    { softcap: 3 },
    { hasBias: true },
    { dropout: 0.5 },
    ...sinks,
    { dropout: 0.25, ...sinks[1] },
  ];
  for (let run = 0; run < scaled(24); run++)
    for (const bits of [12, 20]) {
      const random = randomValues(testSeed + run);
      const cancels = run % 3 === 0;
      const problem = pairedProblem(random, {
        size: 1,
        cancels,
        ...settings[run % settings.length],
      });
      const { row, rules } = onlyRow(problem);
      const found = arbitraryLevel(row, rules.law, bits);
      const { y } = fixedPointExponents(exactScores(row, rules.law), row, rules.law, bits);
      const reference = y.reduce((a, b) => (b > a ? b : a)) >> BigInt(bits);
      const w = y.map((exponent) => createExp2(bits)(exponent - (reference << BigInt(bits))));
      const keys = { sum: w.reduce((a, b) => a + b), error: weightError * BigInt(w.length) };
      const { sum, error, lift } = withSink(keys, reference, row, bits);
      for (let c = 0; c < row.values.dim; c++) {
        // Values as whole multiples of 2^-1074, of the keys that count.
        const v = Array.from(row.visible, (key, j) => {
          if (row.kept?.[j] === 0) return 0n;
          const { numerator, denominator } = rationalOfFloat64(operandRow(row.values, key)[c]);
          return (numerator << 1074n) / denominator;
        });
        const size = (x: bigint) => (x < 0n ? -x : x);
        const product = w.reduce((a, weight, j) => a + weight * v[j], 0n);
        const ofProduct = weightError * v.reduce((a, x) => a + size(x), 0n);
        /** numerator / sum as O has it. */
        const quotient = (numerator: bigint, of: bigint) =>
          float64FromRational(numerator, of << (1074n + lift)) / row.share;
        const out = quotient(product, sum);
        expect(Math.abs(found.out[c] - out)).toBeLessThanOrEqual(4 * u * Math.abs(out));
        // The largest difference is that of the largest product over the smallest sum.
        const farthest = (size(product) + ofProduct) * sum - size(product) * (sum - error);
        const radius = quotient(farthest, sum * (sum - error));
        expect(found.outRadius[c]).toBeGreaterThanOrEqual(radius * (1 - 4 * u));
        expect(found.outRadius[c]).toBeLessThanOrEqual(
          radius * (1 + 2 ** -40) + 4 * u * Math.abs(out) + 2 ** -1073,
        );
      }
    }
});

it('the roundings of results count where sums are exact to far more bits: relative ones, and those of underflow', () => {
  const solve = (scores: readonly number[], values: readonly number[], bits: number) => {
    const k = scores.map((score) => [score]);
    const { row, rules } = onlyRow(singleHead('fp64', { q: [[1]], k, v: values.map((x) => [x]) }));
    return arbitraryLevel(row, rules.law, bits);
  };
  // A third: fp64 is off by u/3 of it.
  const third = solve([0, 0, 0], [1, 0, 0], 400);
  expect(third.out[0]).toBe(1 / 3);
  expect(third.outRadius[0]).toBeGreaterThanOrEqual(u / 3 / 3);
  expect(third.outRadius[0]).toBeLessThanOrEqual(u);
  // A third of the smallest subnormal is rounded to 0.
  const lost = solve([0, 0, 0], [2 ** -1074, 0, 0], 400);
  expect(lost.out[0]).toBe(0);
  expect(lost.outRadius[0]).toBeGreaterThanOrEqual(2 ** -1074);
  expect(lost.outRadius[0]).toBeLessThanOrEqual(2 ** -1072);
  expect(solve([0, 1], [0, 0], 64).outRadius[0]).toBe(0);
});

it('the LSE of one key is its score, also where that is far more than fixed point has bits', () => {
  const random = randomValues(testSeed);
  for (let run = 0; run < scaled(10); run++)
    for (const power of [3, 40, 75, 140]) {
      const score = random.normal() * 2 ** power;
      const { row, rules } = onlyRow(singleHead('fp64', { q: [[1]], k: [[score]], v: [[1]] }));
      const found = arbitraryLevel(row, rules.law, 20);
      expect(Math.abs(found.lse - score)).toBeLessThanOrEqual(found.lseRadius);
      // 4 units of the logarithm, and twice those of a weight relative to a sum of 1/2 at least.
      const most = (4 + 2 * Number(weightError)) * 2 ** -20 + u * Math.abs(score);
      expect(found.lseRadius).toBeLessThanOrEqual(most * (1 + 2 ** -30));
      expect(Math.abs(found.maximum - score)).toBeLessThanOrEqual(
        2 ** -18 + 4 * u * Math.abs(score),
      );
      expect(found.denominator).toBe(found.lse);
    }
});
