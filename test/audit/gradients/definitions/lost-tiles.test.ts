import { describe, expect, it } from 'vitest';
import {
  anyGradientPremises,
  gradientQuantities,
  measureGradients,
  usualFalseAlarmRate,
} from '../../../../src/audit/index.js';
import { describePlace } from '../../../../src/audit/rows/index.js';
import type { FailedGradients } from '../../../../src/audit/gradients/diagnosis/failed-gradients.js';
import { explains } from '../../../../src/audit/gradients/diagnosis/prediction.js';
import { backwardOperands } from '../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import { replayBudget } from '../../../../src/audit/gradients/diagnosis/replay/budget.js';
import { replayOrder } from '../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { placeShown } from '../../../../src/audit/gradients/diagnosis/showing.js';
import { otherTileFaults } from '../../../../src/audit/gradients/diagnosis/sums/tile-faults.js';
import { gradientFindings } from '../../../../src/audit/gradients/gradient-findings.js';
import { judgeGradients } from '../../../../src/audit/gradients/judge-gradient.js';
import {
  measureMeanErrors,
  measureWeightErrors,
} from '../../../../src/audit/gradients/structure/mean-errors.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { lazily } from '../../../../src/reuse.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';

const [heads, queries, keys, dim] = [2, 42, 44, 4] as const;

/** Exact gradients in fp64, and P and dS in plain loops. */
const measured = lazily(() => {
  const random = bellShaped(7);
  const problem = filledProblem({ batch: 1, heads, queries, keys, dim }, random);
  const dout = tensor('bf16', [1, heads, queries, dim], random);
  const premises = anyGradientPremises(problem, 'fp64');
  const forward = { out: null, lse: null };
  const measure = measureGradients(problem, dout, { premises, given: forward });
  const dO = decodeTensor(dout);
  const [q, k, v] = [problem.q, problem.k, problem.v].map((one) => decodeTensor(one));
  const dot = (a: Float64Array, i: number, b: Float64Array, j: number) =>
    Array.from({ length: dim }, (_, c) => a[i * dim + c] * b[j * dim + c]).reduce((x, y) => x + y);
  const rows = Array.from({ length: heads * queries }, (_, row) => {
    const first = Math.floor(row / queries) * keys;
    const all = Array.from({ length: keys }, (__, j) => first + j);
    const sizes = all.map((j) => Math.exp(problem.scale * dot(q, row, k, j)));
    const sum = sizes.reduce((x, y) => x + y);
    const P = sizes.map((x) => x / sum);
    const dP = all.map((j) => dot(dO, row, v, j));
    const D = P.reduce((x, p, j) => x + p * dP[j], 0);
    return { P, dS: P.map((p, j) => p * (dP[j] - D) * problem.scale) };
  });
  return {
    judgement: {
      problem,
      dout,
      premises,
      forward,
      measured: measure,
      together: {
        dk: measureMeanErrors(problem, dO, measure, premises),
        dv: measureWeightErrors(problem, dO, measure),
      },
      falseAlarmRate: usualFalseAlarmRate,
    },
    rows,
    operands: { dq: k, dk: q, dv: dO },
  };
});

type Name = 'dq' | 'dk' | 'dv';

/** What becomes of the share of a query and a key: how often it is there, whose dS or P, and whose row it is multiplied with. */
type Use = (
  head: number,
  query: number,
  key: number,
) => { times?: number; query?: number; key?: number; row?: number } | null;

/** A gradient some of whose shares are others. */
function changed(name: Name, use: Use): Float64Array {
  const { judgement, rows, operands } = measured();
  const values = judgement.measured.gradients[name].exact.values.slice();
  const factor = (head: number, i: number, j: number) => {
    const { P, dS } = rows[head * queries + i];
    return name === 'dv' ? P[j] : dS[j];
  };
  for (let head = 0; head < heads; head++)
    for (let i = 0; i < queries; i++)
      for (let j = 0; j < keys; j++) {
        const other = use(head, i, j);
        if (other === null) continue;
        const [own, count] = name === 'dq' ? [j, keys] : [i, queries];
        const { times = 1, query = i, key = j, row = own } = other;
        const to = name === 'dq' ? head * queries + i : head * keys + j;
        for (let c = 0; c < dim; c++) {
          const operand = operands[name];
          values[to * dim + c] +=
            times * factor(head, query, key) * operand[(head * count + row) * dim + c] -
            factor(head, i, j) * operand[(head * count + own) * dim + c];
        }
      }
  return values;
}

/** What is said of gradients with these changes, and in which words. */
function found(changes: Partial<Record<Name, Use>>): { said: string; sentence: string }[] {
  const { judgement } = measured();
  const given = gradientQuantities.map((quantity) => {
    const use = changes[quantity.name];
    const { values } = judgement.measured.gradients[quantity.name].exact;
    const own = use === undefined ? values : changed(quantity.name, use);
    return { quantity, format: 'fp64', values: own } as const;
  });
  const findings = gradientFindings(judgeGradients(given, judgement), 'any correct kernel');
  const failed: FailedGradients = { ...judgement, given, findings };
  const of = {
    failed,
    operands: backwardOperands(failed.problem, failed.dout),
    budget: replayBudget(1),
    stored: null,
    scope: null,
    order: replayOrder(failed),
  };
  return [...otherTileFaults(of)].flatMap((one) => {
    const place = explains(failed, one) ? placeShown(failed, one, null) : null;
    if (place === null) return [];
    const said = `${one.id}: ${describePlace({ ...place, rows: null })}`;
    return [{ said, sentence: one.sentence }];
  });
}

const said = (changes: Partial<Record<Name, Use>>) => found(changes).map((one) => one.said);

const lastKeys = (key: number) => key >= 32;
const lastQueries = (query: number) => query >= 32;

describe('tiles of 32 that are lost, doubled or of another place', () => {
  it.each<[string, Partial<Record<Name, Use>>]>([
    ['key-tile-missing: keys 32 to 43', { dq: (_, __, j) => (lastKeys(j) ? { times: 0 } : null) }],
    ['key-tile-twice: keys 0 to 31', { dq: (_, __, j) => (lastKeys(j) ? null : { times: 2 }) }],
    [
      'key-tile-missing: head 1, keys 0 to 31',
      { dq: (h, _, j) => (h === 1 && !lastKeys(j) ? { times: 0 } : null) },
    ],
    ['key-tile-stale: keys 32 to 43', { dq: (_, __, j) => (lastKeys(j) ? { key: j - 32 } : null) }],
    ['key-tile-stale: keys 32 to 43', { dq: (_, __, j) => (lastKeys(j) ? { row: j - 32 } : null) }],
    [
      'key-tile-stale: head 0, keys 32 to 43',
      { dq: (h, _, j) => (h === 0 && lastKeys(j) ? { key: j - 32, row: j - 32 } : null) },
    ],
    [
      'query-tile-missing: queries 32 to 41',
      {
        dk: (_, i) => (lastQueries(i) ? { times: 0 } : null),
        dv: (_, i) => (lastQueries(i) ? { times: 0 } : null),
      },
    ],
    [
      'query-tile-twice: kv head 1, queries 0 to 31',
      { dv: (h, i) => (h === 1 && !lastQueries(i) ? { times: 2 } : null) },
    ],
    [
      'query-tile-stale: queries 32 to 41',
      { dk: (_, i) => (lastQueries(i) ? { query: i - 32 } : null) },
    ],
    [
      'query-tile-stale: queries 32 to 41',
      { dv: (_, i) => (lastQueries(i) ? { query: i - 32, row: i - 32 } : null) },
    ],
    [
      'key-tile-missing: head 0, queries 32 to 41, keys 0 to 31',
      { dq: (h, i, j) => (h === 0 && lastQueries(i) && !lastKeys(j) ? { times: 0 } : null) },
    ],
    [
      'query-tile-twice: kv head 1, queries 0 to 31, keys 32 to 43',
      { dk: (h, i, j) => (h === 1 && !lastQueries(i) && lastKeys(j) ? { times: 2 } : null) },
    ],
    [
      'tile-transposed: queries 0 to 31, keys 0 to 31',
      { dq: (_, i, j) => (lastQueries(i) || lastKeys(j) ? null : { query: j, key: i }) },
    ],
    [
      'tile-transposed: kv head 1, queries 0 to 31, keys 0 to 31',
      { dv: (h, i, j) => (h === 0 || lastQueries(i) || lastKeys(j) ? null : { query: j, key: i }) },
    ],
  ])('%s', (wanted, changes) => {
    expect(said(changes)).toEqual([wanted]);
  });

  it.each<[string, Partial<Record<Name, Use>>]>([
    ['dQ lacks what keys 32 to 43 add', { dq: (_, __, j) => (lastKeys(j) ? { times: 0 } : null) }],
    [
      'dQ of queries 32 to 41 of head 0 lacks what keys 0 to 31 add',
      { dq: (h, i, j) => (h === 0 && lastQueries(i) && !lastKeys(j) ? { times: 0 } : null) },
    ],
    [
      'dQ of queries 0 to 31 of head 1 has twice what keys 32 to 43 add',
      { dq: (h, i, j) => (h === 1 && !lastQueries(i) && lastKeys(j) ? { times: 2 } : null) },
    ],
    [
      'dK and dV of keys 32 to 43 of head 1 lack what queries 0 to 31 add',
      {
        dk: (h, i, j) => (h === 1 && !lastQueries(i) && lastKeys(j) ? { times: 0 } : null),
        dv: (h, i, j) => (h === 1 && !lastQueries(i) && lastKeys(j) ? { times: 0 } : null),
      },
    ],
  ])('are told with the rows and keys that they are of: %s', (sentence, changes) => {
    expect(found(changes).map((one) => one.sentence)).toEqual([sentence]);
  });

  it('are not told where a share is half there, or of different heads in dK and dV', () => {
    expect(said({ dq: (_, __, j) => (lastKeys(j) ? { times: 0.5 } : null) })).toEqual([]);
    expect(said({ dq: (_, __, j) => (j >= 20 ? { times: 0 } : null) })).toEqual([]);
    const missingIn =
      (head: number): Use =>
      (h, i) =>
        h === head && lastQueries(i) ? { times: 0 } : null;
    expect(said({ dk: missingIn(0), dv: missingIn(1) })).toEqual([]);
  });
});
