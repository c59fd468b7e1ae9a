import { expect, it } from 'vitest';
import { arbitraryLevel } from '../../../oracles/attention/arbitrary-level.js';
import { operandRow, dotError } from '../../../oracles/attention/operand.js';
import { createTileEngine } from '../../../oracles/attention/tile-engine.js';
import { tileLevel, trustOf } from '../../../oracles/attention/tile-level.js';
import { randomValues } from '../../../properties/problems/values.js';
import type { Problem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { onlyRow, pairedProblem } from './paired-rows.js';

const u = 2 ** -53;

/** Within 2^-18: plain fp64 numbers stand for exact ones here. */
function expectClose(value: number, formula: number, what: string): void {
  const isClose = Math.abs(value - formula) <= 2 ** -18 * Math.abs(formula) + 2 ** -900;
  if (!isClose) expect(value, what).toBe(formula);
}

/** Problems with every feature by itself and some together, of small scores and of large ones. */
function forEachProblem(judge: (problem: Problem) => void): void {
  const sinks = [-20, 0, 3, 500].flatMap((logit) =>
    [true, false].map((inLse) => ({ sink: { logit, inLse } })),
  );
  const settings: readonly Partial<Parameters<typeof pairedProblem>[1]>[] = [
    ...[{}, { softcap: 3 }, { hasBias: true }, { softcap: 20, hasBias: true }, { scale: -2 }],
    ...[{ dropout: 0.5 }, { dropout: 0 }, { dropout: 0.5, ...sinks[2] }],
    ...sinks,
  ];
  for (let run = 0; run < scaled(3); run++)
    for (const one of settings)
      for (const size of [1, 12])
        for (const cancels of [true, false])
          judge(pairedProblem(randomValues(testSeed + run), { size, cancels, ...one }));
}

/** The row of a problem by the formulas in fp64, its weights relative to 2^reference. */
function plainRow(problem: Problem, round: (x: number) => number) {
  const { row, rules, operands } = onlyRow(problem);
  const { law } = rules;
  const raw = Array.from(row.visible, (key) =>
    row.query.reduce((sum, x, t) => sum + x * operandRow(row.keys, key)[t], 0),
  );
  const scores = raw.map((dot, j) => {
    const score = dot * law.scale;
    const capped = law.softcap === null ? score : law.softcap * Math.tanh(score / law.softcap);
    return capped + (row.addends?.[j] ?? 0);
  });
  const largest = Math.max(...scores);
  const reference = round(largest * Math.LOG2E);
  const sink = row.sink === null ? null : row.sink.logit * Math.LOG2E;
  const lift = sink === null ? 0 : Math.max(0, Math.floor(sink) - reference);
  const w = scores.map((s) => 2 ** (s * Math.LOG2E - reference));
  const total = w.reduce((a, b) => a + b, 0);
  const sum = total * 2 ** -lift + (sink === null ? 0 : 2 ** (sink - reference - lift));
  const column = (c: number) =>
    Array.from(row.visible, (key, j) => (row.kept?.[j] === 0 ? 0 : operandRow(row.values, key)[c]));
  const inLse = row.sink?.inLse !== false;
  const lse = inLse
    ? Math.log(sum) + (reference + lift) * Math.LN2
    : Math.log(total) + reference * Math.LN2;
  return { row, rules, operands, w, total, sum, lift, largest, column, inLse, lse };
}

it('fp64 has the radii of its weights and of its sums, and no others', () => {
  forEachProblem((problem) => {
    const plain = plainRow(problem, Math.round);
    const { row, rules, operands, w, total, sum, lift, largest, column, inLse, lse } = plain;
    const ranges = [[{ begin: 0, end: row.visible.length }]];
    const engine = createTileEngine(row.keys.dim, row.values.dim);
    const [found] = tileLevel(engine, { operands, firstRow: 0, ranges }, rules);
    const scoreError = dotError(operands.query, 0, operands.keys, 0);
    const trusted = trustOf(rules, 0, { scoreError, addendError: 0, tiles: 1, extent: 1 });
    const roundings = row.sink === null && row.kept === null ? 2 * u : 6 * u;
    const relative = 2 * trusted * (1 + 2 ** -8) + roundings;
    for (let c = 0; c < row.values.dim; c++) {
      const size = w.reduce((a, weight, j) => a + weight * Math.abs(column(c)[j]), 0);
      const magnitude = (size / sum / row.share) * 2 ** -lift;
      expectClose(found.magnitude[c], magnitude, 'magnitude');
      const radius = relative * (1 + 4 * relative) * magnitude;
      expectClose(found.outRadius[c], radius, 'radius of O');
      // The last column of V is 0: nothing is off there.
      expect(found.outRadius[c] === 0).toBe(c === row.values.dim - 1);
      const out =
        (w.reduce((a, weight, j) => a + weight * column(c)[j], 0) / sum / row.share) * 2 ** -lift;
      expect(Math.abs(found.out[c] - out)).toBeLessThanOrEqual(2 ** -36 * magnitude);
    }
    const logarithm = Math.abs(Math.log(inLse ? sum : total));
    const ofLse = trusted * (1 + 2 ** -8) + 7 * u * logarithm + 4 * u * (Math.abs(lse) + logarithm);
    expectClose(found.lseRadius, ofLse, 'radius of the LSE');
    const near = 2 ** -40 * (1 + Math.abs(lse) + Math.abs(largest));
    expect(Math.abs(found.lse - lse)).toBeLessThanOrEqual(near);
    expect(Math.abs(found.maximum - largest)).toBeLessThanOrEqual(near);
  });
});

it('fixed point has the radii of its units, and no others', () => {
  const bits = 36;
  /** Units by which a weight can be off. */
  const E = 10;
  forEachProblem((problem) => {
    const plain = plainRow(problem, Math.floor);
    const { row, rules, w, sum, lift, column, lse, largest } = plain;
    const found = arbitraryLevel(row, rules.law, bits);
    const unit = 2 ** -bits;
    const ofSum = (E * w.length + (row.sink === null ? 0 : E + 1)) * unit;
    for (let c = 0; c < row.values.dim; c++) {
      const v = column(c);
      const all = v.reduce((a, x) => a + Math.abs(x), 0);
      const product = Math.abs(w.reduce((a, weight, j) => a + weight * v[j], 0));
      const factor = 2 ** -lift / row.share;
      const ofUnits = ((E * unit * all * sum + product * ofSum) / (sum * (sum - ofSum))) * factor;
      expectClose(found.outRadius[c], ofUnits + u * Math.abs(found.out[c]), 'radius of O');
      expect(found.outRadius[c] === 0).toBe(c === row.values.dim - 1);
      const size = w.reduce((a, weight, j) => a + weight * Math.abs(v[j]), 0);
      const near = 2 ** -20 * size * factor + 4 * ofUnits;
      expect(Math.abs(found.magnitude[c] - (size / sum) * factor)).toBeLessThanOrEqual(near);
    }
    const ofLse = 4 * unit + 2 * ofSum + u * Math.abs(lse);
    expectClose(found.lseRadius, ofLse, 'radius of the LSE');
    expect(Math.abs(found.lse - lse)).toBeLessThanOrEqual(
      ofLse + 2 ** -40 * (1 + Math.abs(largest)),
    );
    expect(Math.abs(found.maximum - largest)).toBeLessThanOrEqual(
      2 ** -30 * (1 + Math.abs(largest)),
    );
  });
});
