import { expect, it } from 'vitest';
import { operandRow } from '../../../oracles/attention/operand.js';
import { exactRow } from '../../../oracles/gradients/exact-row.js';
import { forEachRow, type DrawnRow } from './drawn-rows.js';

/** What a weight may be off by, in units: docs/theory/bounds-backward.md. */
const E = 10;
const slack = 1 + 2 ** -20;

/** Within 2^-18, or what fixed point may be off by: plain fp64 numbers stand for exact ones here. */
function expectClose(value: number, formula: number, what: string, absolute = 0): void {
  const isClose = Math.abs(value - formula) <= 2 ** -18 * Math.abs(formula) + absolute + 2 ** -1060;
  if (!isClose) expect(value, what).toBe(formula);
}

/** P, x and the errors of Theorem 3 for `bits` fraction bits, by its formulas in fp64. */
function theorem({ row, rules, dout }: DrawnRow, bits: number) {
  const { law } = rules;
  const { values, visible, kept, sink, addends, addendRests } = row;
  const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, x, t) => sum + x * b[t], 0);
  const scores = Array.from(visible, (key, j) => {
    const score = law.scale * dot(row.query, operandRow(row.keys, key));
    const tanh = law.softcap === null ? 0 : Math.tanh(score / law.softcap);
    const capped = law.softcap === null ? score : law.softcap * tanh;
    const whole = capped + (addends?.[j] ?? 0) + (addendRests?.[j] ?? 0);
    return {
      y: whole * Math.LOG2E,
      slope: law.softcap === null ? 1 : 1 / Math.cosh(score / law.softcap) ** 2,
    };
  });
  const n = scores.length;
  const reference = Math.floor(Math.max(...scores.map(({ y }) => y)));
  const ofSink = (sink?.logit ?? 0) * Math.LOG2E;
  const lift = sink === null ? 0 : Math.max(0, Math.floor(ofSink) - reference);
  const w = scores.map(({ y }) => 2 ** (y - reference - lift));
  const keys = w.reduce((a, b) => a + b, 0);
  const sunk = sink === null ? 0 : 2 ** (ofSink - reference - lift);
  const S = keys + sunk;
  const ofSum = (n * E + (sink === null ? 0 : E + 1)) * 2 ** -bits;
  const p = w.map((weight) => weight / S);
  const x = Array.from(visible, (key, j) =>
    kept?.[j] === 0 ? 0 : dot(dout.values, operandRow(values, key)),
  );
  const largest = Math.max(...x.map((a) => Math.abs(a)));
  const unit = 2 ** (Math.floor(Math.log2(largest)) + 1 - bits);
  const D = p.reduce((sum, weight, j) => sum + weight * x[j], 0);
  const size = p.reduce((sum, weight, j) => sum + weight * Math.abs(x[j]), 0);
  const e = p.map((weight) => (E * 2 ** (-lift - bits) + weight * ofSum) / (S - ofSum));
  const delta = e.reduce((sum, error, j) => sum + error * Math.abs(x[j]), 0);
  const slopes = scores.map(({ slope }) => slope);
  return { p, x, D, size, e, delta, unit, largest, slopes, sinkShare: sunk / S };
}

it.each([44, 64])('fixed point of %s bits has the radii of Theorem 3, and no others', (bits) => {
  let rows = 0;
  forEachRow(
    (drawn) => {
      const { row, rules, dout } = drawn;
      const { p, x, D, size, e, delta, unit, largest, slopes, sinkShare } = theorem(drawn, bits);
      // Of scores beyond a million octaves nothing is left in fp64; rows whose x are all 0 have no unit.
      if (!(largest > 2 ** -100) || !p.every(Number.isFinite)) return;
      rows++;
      const found = exactRow(row, dout.values, rules.law, bits);
      const { share } = row;
      const isCapped = rules.law.softcap !== null;
      p.forEach((weight, j) => {
        const isKept = row.kept?.[j] !== 0;
        expectClose(
          found.weights.values[j],
          isKept ? weight / share : 0,
          'P',
          2 ** (8 - bits) / share,
        );
        const ofWeight = isKept ? (e[j] + 2 ** -bits) / share : 0;
        expectClose(found.weights.radius[j], ofWeight, 'radius of P');
        const scale = (weight * (Math.abs(x[j]) + size)) / share;
        const absolute = (2 ** (9 - bits) * (Math.abs(x[j]) + largest)) / share;
        expectClose(found.scales[j], scale, 'scale', absolute);
        expectClose(found.cappedScales[j], scale * slopes[j], 'scale of dT', absolute);
        const ds = weight * (x[j] - D);
        const ofScore = e[j] * (Math.abs(x[j]) + Math.abs(D)) + (weight + e[j]) * delta + unit;
        expectClose(found.scoreDerivatives.radius[j], ofScore / share, 'radius of dS');
        const ofKey = ofScore + Math.abs(ds) * 2 ** (1 - bits) + unit;
        expectClose(
          found.derivatives.radius[j],
          (isCapped ? ofKey : ofScore) / share,
          'radius of dT',
        );
        const dS = found.scoreDerivatives.values[j];
        expect(Math.abs(dS - ds / share)).toBeLessThanOrEqual((2 ** -30 * largest) / share);
        const dT = found.derivatives.values[j];
        expect(Math.abs(dT - (ds * slopes[j]) / share)).toBeLessThanOrEqual(
          (2 ** -30 * largest) / share,
        );
      });
      expect(Math.abs(found.mean - D / share)).toBeLessThanOrEqual(
        (2 ** -30 * size) / share + 2 ** -40 * largest,
      );
      expectClose(found.meanSize, size / share, 'Σ P|x|', (2 ** (9 - bits) * largest) / share);
      const ofMean = (delta / share + 2 ** -53 * Math.abs(found.mean)) * slack;
      expectClose(found.meanRadius, ofMean, 'radius of D');
      expectClose(found.sinkShare, sinkShare, 'share of the sink', 2 ** (8 - bits));
    },
    { problems: 30 },
  );
  expect(rows).toBeGreaterThan(0);
});
