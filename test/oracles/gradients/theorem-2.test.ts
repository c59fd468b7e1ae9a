import { expect, it } from 'vitest';
import { compensatedExponents } from '../../../oracles/attention/double-double-exponents.js';
import { operandRow } from '../../../oracles/attention/operand.js';
import { sinkFrom } from '../../../oracles/attention/sink.js';
import { doubleDoubleExp2Error } from '../../../oracles/exp2.js';
import {
  doubleDoubleProduct,
  doubleDoubleRow,
} from '../../../oracles/gradients/double-double-row.js';
import type { Problem } from '../../../src/problem/index.js';
import { singleHead, tensor } from '../../setup/problems.js';
import { oracleFeatures } from '../attention/features/featured-problems.js';
import { forEachRow, rowsOf, type DrawnRow } from './drawn-rows.js';

const u = 2 ** -53;
/** F of the theorems: what products of errors come to. */
const slack = 1 + 2 ** -5;

/** Within a millionth: plain fp64 numbers stand for exact ones here. */
function expectClose(value: number, formula: number, what: string): void {
  const isClose = Math.abs(value - formula) <= 1e-6 * Math.abs(formula) + 2 ** -1070;
  if (!isClose) expect(value, what).toBe(formula);
}

/** P, x, D, Σ P|x| and the errors of Theorem 2 (docs/theory/bounds-backward.md), by its formulas in fp64. */
function theorem({ row, rules, dout }: DrawnRow) {
  const { values, visible, kept, share } = row;
  const { y, error, origin } = compensatedExponents(row, rules.law, rules.constants);
  const n = visible.length;
  const sink = row.sink === null ? null : (sinkFrom(row.sink, origin).weight ?? null);
  const top = Math.max(...y.map(({ high }) => high), sink?.exponent ?? -Infinity);
  const w = y.map(({ high }) => 2 ** (high - top));
  const ofSink = sink === null ? 0 : sink.fraction.high * 2 ** (sink.exponent - top);
  const sum = w.reduce((a, b) => a + b, ofSink);
  const p = w.map((weight) => weight / sum);
  const x = Array.from(visible, (key, j) =>
    kept?.[j] === 0
      ? 0
      : dout.values.reduce((a, d, c) => a + d * operandRow(values, key)[c], 0) / share,
  );
  const meanSize = p.reduce((a, weight, j) => a + weight * Math.abs(x[j]), 0);
  const mean = p.reduce((a, weight, j) => a + weight * x[j], 0);
  const largest = dout.norm * Math.max(...Array.from(visible, (key) => values.norm[key]));
  const ofWeight = (Math.LN2 * error + doubleDoubleExp2Error) * (1 + 2 ** -10);
  const rho = (2 * Math.max(ofWeight, sink?.error ?? 0) + (3 * n + 30) * u ** 2) * slack;
  const delta = (2.1 * (values.dim + 1) ** 2 * u ** 2 * largest) / share;
  const mu = rho + (3 * n + 20) * u ** 2;
  const phi = (n + 1) * ((2 ** -978 * 2 * largest) / share + 2 ** -1060);
  return { n, p, x, mean, meanSize, rho, delta, mu, phi, sinkShare: ofSink / sum };
}

it('double-double has the radii of Theorem 2, and no others', () => {
  let solved = 0;
  const of = oracleFeatures.filter((name) => name !== 'softcap');
  forEachRow(
    (drawn) => {
      const { row, rules, dout } = drawn;
      const found = doubleDoubleRow(row, dout, rules.law, rules.constants);
      if (found === null) return;
      solved++;
      const { kept, share } = row;
      const { p, x, mean, meanSize, rho, delta, mu, phi, sinkShare } = theorem(drawn);
      p.forEach((weight, j) => {
        // Around where weights are dropped P is one thing or the other.
        if (weight < 2 ** -900 && weight > 0) return;
        const scale = weight * (Math.abs(x[j]) + meanSize);
        expectClose(found.scales[j], scale, 'scales');
        expectClose(found.cappedScales[j], scale, 'scales without a softcap');
        const ofDerivative = (2 * mu * scale + 2 * delta * weight) * slack + phi;
        expectClose(found.derivatives.radius[j], ofDerivative, 'dS');
        const isKept = kept?.[j] !== 0;
        const applied = isKept ? weight / share : 0;
        expectClose(found.weights.values[j], applied, 'P');
        const floor = isKept ? 2 ** -978 / share : 0;
        expectClose(found.weights.radius[j], 2 * rho * applied + floor, 'radius of P');
        expect(Math.abs(found.derivatives.values[j] - weight * (x[j] - mean))).toBeLessThanOrEqual(
          2 ** -30 * scale,
        );
      });
      expect(Math.abs(found.mean - mean)).toBeLessThanOrEqual(2 ** -30 * meanSize);
      expectClose(found.meanSize, meanSize, 'Σ P|x|');
      const ofMean = (mu * meanSize + delta) * slack + u * Math.abs(found.mean) + phi;
      expectClose(found.meanRadius, ofMean, 'D');
      expectClose(found.sinkShare, sinkShare, 'share of the sink');
      expect(found.scoreDerivatives).toBe(found.derivatives);
    },
    { problems: 60, of },
  );
  expect(solved).toBeGreaterThan(0);
});

it('a row of dQ in double-double has the error of its sum, of its terms and of its rounding', () => {
  const of = oracleFeatures.filter((name) => name !== 'softcap');
  forEachRow(
    ({ row, rules, dout }) => {
      const found = doubleDoubleRow(row, dout, rules.law, rules.constants);
      if (found === null) return;
      const { keys, visible } = row;
      const n = visible.length;
      for (const scale of [0.3, -7]) {
        const factor = Math.abs(scale);
        const dq = doubleDoubleProduct(found, keys, visible, scale);
        for (let c = 0; c < keys.dim; c++) {
          const column = Array.from(visible, (key) => Math.abs(operandRow(keys, key)[c]));
          const total = (numbers: Float64Array) =>
            column.reduce((sum, k, j) => sum + numbers[j] * k, 0);
          const size = total(found.scales);
          const largest = keys.columnLargest[c];
          const ofSum = 3.1 * (n + 2) ** 2 * u ** 2 * size;
          const floor = n * 2 ** -1065 * (1 + largest);
          const ofTerms = factor * (total(found.derivatives.radius) + ofSum + floor) * slack;
          const radius = ofTerms + 2.1 * u * Math.abs(dq.values[c]) + 2 ** -1073;
          expectClose(dq.magnitude[c], size * factor, 'magnitude');
          expectClose(dq.radius[c], largest === 0 ? 0 : radius, 'radius');
        }
      }
    },
    { problems: 12, of },
  );
});

/** The only row of a problem, solved in double-double; null where that is beyond its range. */
function solve(problem: Problem, dO: readonly number[]) {
  const [{ row, rules }] = [...rowsOf(problem, 1)];
  const norm = Math.hypot(...dO) * (1 + 2 ** -40);
  return doubleDoubleRow(row, { values: Float64Array.from(dO), norm }, rules.law, rules.constants);
}

/** Two keys of which one has this score, and a sink of this logit. */
function rowOf(score: number, v: number, logit: number | null = null): Problem {
  const problem = singleHead('fp64', { q: [[score]], k: [[1], [0]], v: [[v], [1]] });
  if (logit === null) return problem;
  return { ...problem, sink: { logits: tensor('fp64', [1], () => logit), inLse: true } };
}

it('double-double solves what is within its range, and nothing beyond', () => {
  for (const sign of [1, -1]) {
    expect(solve(rowOf(sign * 2 ** 40 * Math.LN2 * (1 - 2 ** -20), 1), [1])).not.toBeNull();
    expect(solve(rowOf(sign * 2 ** 40 * Math.LN2 * (1 + 2 ** -20), 1), [1])).toBeNull();
  }
  expect(solve(rowOf(0, 1, 900.5 * Math.LN2), [1])).not.toBeNull();
  expect(solve(rowOf(0, 1, 901.5 * Math.LN2), [1])).toBeNull();
  expect(solve(rowOf(0, 1, 2 ** 39), [1])).toBeNull();
  expect(solve(rowOf(0, 1, 2 ** 40), [1])).toBeNull();
  expect(solve(rowOf(0, 2 ** 450), [2 ** 450 * (1 - 2 ** -20)])).not.toBeNull();
  expect(solve(rowOf(0, 2 ** 450), [2 ** 450 * (1 + 2 ** -20)])).toBeNull();
});

it('double-double trusts no weight whose exponent errs by more than 2^-12', () => {
  // Scores are 0, norms are not: 2.1 (d + 1)² u² ‖q‖‖k‖ · 1.4427 is the error of an exponent.
  const size = 2 ** -12 / (2.1 * 9 * u ** 2 * 1.4427);
  const ofNorms = (share: number) => {
    const norm = Math.sqrt(size * share);
    return solve(singleHead('fp64', { q: [[norm, 0]], k: [[0, norm]], v: [[1]] }), [1]);
  };
  expect(ofNorms(0.999)).not.toBeNull();
  expect(ofNorms(1.001)).toBeNull();
});
