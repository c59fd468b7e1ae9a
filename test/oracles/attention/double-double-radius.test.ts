import { expect, it } from 'vitest';
import { fixedPointExponents } from '../../../oracles/attention/arbitrary-level.js';
import {
  compensatedDotError,
  compensatedExponents,
  exactExponents,
  type Exponents,
} from '../../../oracles/attention/double-double-exponents.js';
import { doubleDoubleLevel, dotProducts } from '../../../oracles/attention/double-double-level.js';
import { operandRow } from '../../../oracles/attention/operand.js';
import type { Row } from '../../../oracles/attention/row.js';
import { exactScores } from '../../../oracles/attention/scores.js';
import { sinkFrom } from '../../../oracles/attention/sink.js';
import { doubleDoubleExp2Error } from '../../../oracles/exp2.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { Problem, ScoreLaw } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { singleHead, tensor } from '../../setup/problems.js';
import { onlyRow, pairedProblem } from './paired-rows.js';

const u = 2 ** -53;

/** Within a millionth: plain fp64 numbers stand for exact ones here. */
function expectClose(value: number, formula: number, what: string): void {
  const isClose = Math.abs(value - formula) <= 1e-6 * Math.abs(formula) + 2 ** -1072;
  if (!isClose) expect(value, what).toBe(formula);
}

/** Problems with every feature by itself and some together, of small scores and of large norms. */
function forEachProblem(judge: (problem: Problem) => void): void {
  const sinks = [-20, 0, 3, 500].flatMap((logit) =>
    [true, false].map((inLse) => ({ sink: { logit, inLse } })),
  );
  const settings: readonly Partial<Parameters<typeof pairedProblem>[1]>[] = [
    ...[{}, { softcap: 3 }, { hasBias: true }, { softcap: 20, hasBias: true }, { scale: -2 }],
    ...[{ dropout: 0.5 }, { dropout: 0 }, { dropout: 0.5, ...sinks[2] }],
    ...sinks,
  ];
  for (let run = 0; run < scaled(2); run++)
    for (const one of settings)
      for (const size of [1, 40])
        for (const cancels of [true, false])
          judge(pairedProblem(randomValues(testSeed + run), { size, cancels, ...one }));
}

/** The bound on the error of a row's exponents, by what docs/theory/bounds.md counts. */
function errorOfExponents(row: Row, law: ScoreLaw, isExact: boolean): number {
  const { keys, visible, queryNorm, addends } = row;
  const keyNorm = Math.max(...Array.from(visible, (key) => keys.norm[key]));
  const scores = Array.from(visible, (key) =>
    row.query.reduce((sum, x, t) => sum + x * operandRow(keys, key)[t], 0),
  ).map((dot) => {
    const score = dot * law.scale;
    return law.softcap === null ? score : law.softcap * Math.tanh(score / law.softcap);
  });
  const sizes = scores.map((s, j) => Math.abs(s) + Math.abs(addends?.[j] ?? 0));
  const ofSum = addends === null ? 0 : 10 * u ** 2 * Math.max(...sizes) * Math.LOG2E;
  if (isExact && law.softcap === null) return 2 ** -90;
  const ofCap = (law.softcap ?? 0) * 1.4427 * (2 ** -98 + (isExact ? 2 ** 12 : 10) * u ** 2);
  if (isExact) return ofCap + ofSum;
  const ofDots =
    Math.abs(law.scale) * 1.4427 * 2.1 * (keys.dim + 1) ** 2 * u ** 2 * queryNorm * keyNorm;
  const most = Math.max(...scores.map((s) => Math.abs(s))) * Math.LOG2E;
  const ofProduct = law.softcap === null ? 10 * u ** 2 * most : 0;
  return ofDots + ofProduct + ofCap + ofSum;
}

const exponentsBy = { compensated: compensatedExponents, exact: exactExponents } as const;

it.each(dotProducts)(
  'exponents from %s dot products are within a bound that is their own',
  (way) => {
    const bits = 256;
    forEachProblem((problem) => {
      const { row, rules } = onlyRow(problem);
      const { y, error, origin } = exponentsBy[way](row, rules.law, rules.constants);
      expectClose(error, errorOfExponents(row, rules.law, way === 'exact'), 'error');
      const exact = fixedPointExponents(exactScores(row, rules.law), row, rules.law, bits).y;
      const isFromLargest = way === 'exact' && rules.law.softcap === null;
      const largest = exact.reduce((a, b) => (b > a ? b : a));
      y.forEach(({ high, low }, j) => {
        const found = BigInt(high * 2 ** 52 * 2 ** 150) * 2n ** 54n + BigInt(low * 2 ** 256);
        const difference = Number(found - exact[j] + (isFromLargest ? largest : 0n)) * 2 ** -bits;
        // Of what is cut short nothing is left of a weight.
        if (isFromLargest && high === -2000) expect(difference).toBeGreaterThanOrEqual(0);
        else expect(Math.abs(difference)).toBeLessThanOrEqual(error + 2 ** -250);
      });
      const ofOrigin = isFromLargest ? Number(largest) * 2 ** -bits * Math.LN2 : 0;
      expectClose(origin.high, ofOrigin, 'origin');
    });
  },
);

/** The row's weights and the relative error of all that is made of them, by the level's formulas. */
function weightsOf(row: Row, { y, error, origin }: Exponents) {
  const reference = Math.round(Math.max(...y.map(({ high }) => high)));
  const w = y.map(({ high }) => (high < reference - 1000 ? 0 : 2 ** (high - reference)));
  const total = w.reduce((a, b) => a + b, 0);
  const sink = row.sink === null ? null : sinkFrom(row.sink, origin).weight;
  const lift = sink === null ? 0 : Math.max(0, sink.exponent - reference);
  const ofSink = sink === null ? 0 : sink.fraction.high * 2 ** (sink.exponent - reference - lift);
  const sum = (sink === null ? total : total * 2 ** -lift) + ofSink;
  const n = w.length + (sink === null ? 0 : 1);
  const ofWeight = (Math.LN2 * error + doubleDoubleExp2Error) * (1 + 2 ** -10);
  const trusted = Math.max(ofWeight, sink?.error ?? 0);
  const roundings = row.sink === null && row.share === 1 ? 32 : 40;
  const relative = 2 * (trusted + 3.1 * (n + 2) ** 2 * u ** 2) + roundings * u ** 2;
  return { w, total, sum, lift, reference, relative, n };
}

it.each(dotProducts)(
  'O from %s dot products has the radius of its weights, and no other',
  (way) => {
    forEachProblem((problem) => {
      const { row, rules } = onlyRow(problem);
      const found = doubleDoubleLevel(row, rules.law, rules.constants, way);
      const exponents = exponentsBy[way](row, rules.law, rules.constants);
      const { w, total, sum, lift, reference, relative, n } = weightsOf(row, exponents);
      for (let c = 0; c < row.values.dim; c++) {
        const v = Array.from(row.visible, (key, j) =>
          row.kept?.[j] === 0 ? 0 : operandRow(row.values, key)[c],
        );
        const size = w.reduce((a, weight, j) => a + weight * Math.abs(v[j]), 0);
        const magnitude = (size / sum / row.share) * 2 ** -lift;
        expectClose(found.magnitude[c], magnitude, 'magnitude');
        const largest = Math.max(...v.map((x) => Math.abs(x)));
        const floor = (2 * n * (2 ** -999 * largest + 2 ** -1065)) / (sum * row.share);
        const radius =
          relative * (1 + 2 ** -10) * magnitude +
          u * Math.abs(found.out[c]) +
          floor * 2 ** -lift +
          (lift === 0 ? 0 : 2 ** -1073);
        expectClose(found.outRadius[c], largest === 0 ? 0 : radius, `radius of O, lift ${lift}`);
      }
      const ofLogarithm = (x: number, value: number) =>
        relative +
        (u * Math.abs(Math.log(x)) + 2 ** -76) +
        1.5 * u * Math.abs(value) +
        4 * u * Math.abs(Math.log(x)) +
        u ** 2;
      const inLse = row.sink?.inLse !== false;
      expectClose(
        found.lseRadius,
        ofLogarithm(inLse ? sum : total, found.lse),
        'radius of the LSE',
      );
      const { high } = exponents.origin;
      const logarithm = (x: number, octaves: number) => high + octaves * Math.LN2 + Math.log(x);
      const lse = inLse ? logarithm(sum, reference + lift) : logarithm(total, reference);
      expect(Math.abs(found.lse - lse)).toBeLessThanOrEqual(1e-9 * (1 + Math.abs(high)));
      const denominator = logarithm(sum, reference + lift);
      expect(Math.abs(found.denominator - denominator)).toBeLessThanOrEqual(
        1e-9 * (1 + Math.abs(high)),
      );
    });
  },
);

/** The radius of O of a row with two keys whose scores these numbers make, and of a value and its negative. */
function radiusOf(problem: Problem, way: (typeof dotProducts)[number] = 'compensated'): number {
  const { row, rules } = onlyRow(problem);
  const { outRadius, lseRadius } = doubleDoubleLevel(row, rules.law, rules.constants, way);
  expect(outRadius[0] < Infinity).toBe(lseRadius < Infinity);
  return outRadius[0];
}

it('what is beyond the range of double-double has no finite radius, and all else has one', () => {
  const scored = (score: number) =>
    singleHead('fp64', { q: [[score]], k: [[1], [0]], v: [[1], [-1]] });
  const limit = 2 ** 40 * Math.LN2;
  for (const sign of [1, -1]) {
    expect(radiusOf(scored(sign * limit * (1 - 2 ** -20)))).toBeLessThan(1);
    expect(radiusOf(scored(sign * limit * (1 + 2 ** -20)))).toBe(Infinity);
    // Those from exact dot products count from the largest.
    expect(radiusOf(scored(sign * limit * 4), 'exact')).toBeLessThan(1);
  }
  const size = 2 ** -12 / (2.1 * 9 * u ** 2 * 1.4427);
  const ofNorms = (share: number) => {
    const norm = Math.sqrt(size * share);
    return radiusOf(singleHead('fp64', { q: [[norm, 0]], k: [[0, norm]], v: [[1]] }));
  };
  expect(ofNorms(0.999)).toBeLessThan(2 ** -11);
  expect(ofNorms(1.001)).toBe(Infinity);
  const sunk = (logit: number) => ({
    ...scored(0),
    sink: { logits: tensor('fp64', [1], () => logit), inLse: true },
  });
  expect(radiusOf(sunk(2 ** 39))).toBeLessThan(1);
  expect(radiusOf(sunk(2 ** 39 * (1 + 2 ** -20)))).toBe(Infinity);
});

it('what underflows has a bound of its own, where all else is 0', () => {
  expect(compensatedDotError(5, 0)).toBe(5 * 2 ** -1070);
  expect(compensatedDotError(5, 3)).toBe(2.1 * 36 * u ** 2 * 3);
  const { row, rules } = onlyRow({
    ...singleHead('fp64', { q: [[0, 0, 0]], k: [[0, 0, 0]], v: [[1]] }),
    scale: 4,
  });
  const { error } = compensatedExponents(row, rules.law, rules.constants);
  // Of the dot product, times the scale and log2 e, and of the words of the constants.
  const formula = (4 * 1.4427 * 3 + 1) * 2 ** -1070;
  expect(Math.abs(error - formula)).toBeLessThanOrEqual(2 ** -1073);
});
