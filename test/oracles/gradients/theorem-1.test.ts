import { expect, it } from 'vitest';
import { operandRow, tileRows, dotError, gamma } from '../../../oracles/attention/operand.js';
import type { Rules } from '../../../oracles/attention/rules.js';
import { rulesOf } from '../../../oracles/attention/rules.js';
import { trustOf } from '../../../oracles/attention/tile-level.js';
import { createGradientEngine } from '../../../oracles/gradients/gradient-engine.js';
import { headGroups } from '../../../oracles/gradients/operands.js';
import { leaveOut, rowStatistics } from '../../../oracles/gradients/row-statistics.js';
import type { GradientBlock } from '../../../oracles/gradients/weigh-tile.js';
import { randomValues } from '../../../properties/problems/values.js';
import { keysOf, problemMask, problemShape, type Problem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';

const u = 2 ** -53;
const slack = 1 + 2 ** -5;

/** Within a millionth: plain fp64 numbers stand for exact ones here. */
function expectClose(value: number, formula: number, what: string): void {
  const isClose = Math.abs(value - formula) <= 1e-6 * Math.abs(formula);
  if (!isClose) expect(value, what).toBe(formula);
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
const dot = (a: Float64Array, b: Float64Array) => a.reduce((total, x, t) => total + x * b[t], 0);

/** The statistics of one row by the definitions of Theorem 1 (docs/theory/bounds-backward.md); null where it says nothing. */
function theorem(block: GradientBlock, rules: Rules, i: number) {
  const { query, keys, values, dout, head } = block.operands;
  const { law, kept } = rules;
  const row = block.firstRow + i;
  const share = kept?.share ?? 1;
  const kappa = kept === null ? 0 : 3 * u;
  const visible = [...keysOf(block.ranges[i])];
  const places = [...new Set(visible.map((key) => Math.floor(key / tileRows)))];
  const q = operandRow(query, row).slice();
  const dO = operandRow(dout, row).slice();
  const isKept = new Uint8Array(tileRows);
  const tile = new Float64Array(tileRows);
  const scores = visible.map((key) => {
    const score = law.scale * dot(q, operandRow(keys, key));
    const capped = law.softcap === null ? score : law.softcap * Math.tanh(score / law.softcap);
    law.addend?.(head, row, key - (key % tileRows), tile, new Float64Array(tileRows));
    return { raw: score, capped, whole: capped + (law.addend === null ? 0 : tile[key % tileRows]) };
  });
  const x = visible.map((key) => {
    kept?.fill(head, row, key - (key % tileRows), isKept);
    return kept !== null && isKept[key % tileRows] === 0
      ? 0
      : dot(dO, operandRow(values, key)) / share;
  });
  const logit = rules.sinkOf(head)?.logit ?? -Infinity;
  const top = Math.max(logit, ...scores.map(({ whole }) => whole));
  const w = scores.map(({ whole }) => Math.exp(whole - top));
  const total = sum(w) + Math.exp(logit - top);
  const p = w.map((weight) => weight / total);
  const most = (of: (place: number) => number) => Math.max(...places.map(of));
  const scoreError = most((at) => dotError(query, row, keys, at));
  // Of the largest product that an exponent has: no more matters of it than whether it is in range.
  const extent = Math.max(...scores.map(({ raw }) => Math.abs(raw))) * 2;
  const tau = trustOf(rules, head, {
    scoreError,
    addendError: 0,
    tiles: places.length + 2,
    extent,
  });
  const rho = 2 * tau * (1 + 2 ** -8) + 10 * u;
  const delta = most((at) => dotError(dout, row, values, at)) / share;
  const slopeExponent = most(
    (at) =>
      2 *
      Math.LOG2E *
      Math.abs(law.scale / (law.softcap ?? 1)) *
      query.norm[row] *
      keys.ofTile(at).norm,
  );
  const ofSlope =
    law.softcap === null
      ? 0
      : 2 * Math.abs(law.scale / law.softcap) * scoreError * slack +
        (24 + 2 * Math.min(1001, slopeExponent)) * u;
  const size = sum(p.map((weight, j) => weight * Math.abs(x[j])));
  const mean = sum(p.map((weight, j) => weight * x[j]));
  const reach = most((at) => dout.norm[row] * values.ofTile(at).norm);
  const phi = tileRows * (places.length + 1) * ((2 ** -978 * 2 * reach) / share + 2 ** -1068);
  const sigma = (2 * rho + 3 * u + kappa) * slack;
  return {
    mean,
    size,
    meanRadius: ((rho + kappa) * size + delta) * slack + phi,
    weightError: (rho + kappa) * slack,
    relative: law.softcap === null ? sigma : (sigma + 2 * ofSlope + 2 * u) * slack,
    absolute: 2 * delta * slack,
    floor: phi,
    tiles: places.length,
    sinkShare: Math.exp(logit - top) / total,
  };
}

/** Problems of two tiles and more, with what the statistics know of: one feature at a time, and some together. */
function problems(run: number): Problem[] {
  const random = randomValues(testSeed + run);
  const [queries, keys] = [5, 130];
  const make = (changes: Partial<Problem>, format: 'bf16' | 'fp32' | 'fp64' = 'fp32') =>
    filledProblem({ queries, keys, dim: 3, vDim: 5, format }, random.normal, changes);
  const sink = (logit: number) => ({
    sink: { logits: tensor('fp32', [1], () => logit), inLse: true },
  });
  const dropout = (probability: number) => ({
    dropout: {
      probability,
      kept: {
        shape: [queries, keys],
        data: Uint8Array.from({ length: queries * keys }, () => random.integer(0, 1)),
      },
    },
  });
  const bias = { bias: tensor('fp32', [queries, keys], random.normal) };
  return [
    ...[make({}), make({}, 'bf16'), make({}, 'fp64'), make({ scale: -2 }), make(bias)],
    ...[
      make({ causal: true }),
      make({ window: { left: 3, right: 1 } }),
      make({ softcap: 2 }, 'fp64'),
    ],
    ...[make(sink(1)), make(sink(40)), make(sink(-9)), make(dropout(0.5)), make(dropout(0))],
    make({ softcap: 30, ...sink(2), ...dropout(0.75), ...bias }, 'fp64'),
  ];
}

it('the first pass finds what Theorem 1 says, and no other errors', () => {
  for (let run = 0; run < scaled(2); run++)
    for (const problem of problems(run)) {
      const shape = problemShape(problem);
      const rules = rulesOf(problem, shape);
      const mask = problemMask(problem, shape);
      const random = randomValues(testSeed + run + 99);
      const dout = tensor(problem.q.format, [1, 1, shape.queries, shape.vDim], random.normal);
      const [group] = [...headGroups(problem, dout, shape)];
      const operands = group.operandsOf(0);
      const ranges = Array.from({ length: shape.queries }, (_, i) => mask.ranges(0, i));
      const engine = createGradientEngine(shape.qkDim, shape.vDim);
      const block = { operands, firstRow: 0, ranges };
      const found = rowStatistics(engine, block, rules);
      ranges.forEach((ofRow, i) => {
        expect(found.isUsable[i]).toBe(ofRow.length > 0 ? 1 : 0);
        if (ofRow.length === 0) return;
        const formula = theorem(block, rules, i);
        expect(Math.abs(found.mean[i] - formula.mean)).toBeLessThan(1e-9 * formula.size);
        expectClose(found.meanSize[i], formula.size, 'Σ P|x|');
        for (const name of ['meanRadius', 'weightError', 'relative', 'absolute', 'floor'] as const)
          expectClose(found[name][i], formula[name], name);
        expect(found.tiles[i]).toBe(formula.tiles);
        expectClose(found.sinkShare[i], formula.sinkShare, 'share of the sink');
      });
      leaveOut(found, 0);
      for (const name of ['isUsable', 'weightError', 'relative', 'absolute', 'floor'] as const)
        expect(found[name][0]).toBe(0);
    }
});

it('trusts weights by the errors of their exponents and of their sums, within its range', () => {
  const problem = filledProblem({ queries: 1, keys: 2, dim: 1, format: 'fp64' }, () => 1);
  const of = (changes: Partial<Problem>) => {
    const changed = { ...problem, ...changes };
    return rulesOf(changed, problemShape(changed));
  };
  const none = { scoreError: 0, addendError: 0, tiles: 3, extent: 1 };
  const plain = of({ scale: -4 });
  const sunk = of({ scale: -4, sink: { logits: tensor('fp64', [1], () => 3), inLse: true } });
  const capped = of({ scale: -4, softcap: 8 });
  const biased = of({ bias: tensor('fp32', [1, 2], () => 1) });
  const exp = (x: number) => (x + x ** 2) * (1 + 2 ** -20) + 4 * u;
  expect(trustOf(plain, 0, none)).toBe(4 * u + gamma(67));
  expect(trustOf(sunk, 0, none)).toBe(4 * u + gamma(68));
  expect(trustOf(capped, 0, none)).toBe(exp(2 ** -47) + gamma(67));
  const erring = { ...none, scoreError: 2 ** -20, addendError: 2 ** -19 };
  expect(trustOf(plain, 0, erring)).toBe(exp(2 ** -18 + 2 ** -19) + gamma(67));
  for (const [share, isFinite] of [
    [0.999, true],
    [1, false],
    [1.001, false],
  ] as const)
    expect(trustOf(plain, 0, { ...none, scoreError: 2 ** -12 * share }) < 1).toBe(isFinite);
  for (const [rules, largest] of [
    [plain, 2 ** 40],
    [biased, 2 ** 38],
  ] as const) {
    expect(trustOf(rules, 0, { ...none, extent: largest })).toBeLessThan(1);
    expect(trustOf(rules, 0, { ...none, extent: largest + 1 })).toBe(Infinity);
  }
  const beyond = of({ sink: { logits: tensor('fp64', [1], () => 2 ** 40), inLse: true } });
  expect(trustOf(beyond, 0, none)).toBe(Infinity);
});
