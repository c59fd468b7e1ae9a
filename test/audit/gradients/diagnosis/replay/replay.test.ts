import { describe, expect, it } from 'vitest';
import { anyGradientPremises, measureGradients } from '../../../../../src/audit/index.js';
import {
  backwardOperands,
  type BackwardChange,
} from '../../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import type { FailedGradients } from '../../../../../src/audit/gradients/diagnosis/failed-gradients.js';
import {
  replay,
  replayWay,
  type Replayed,
} from '../../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { gradientQuantities } from '../../../../../src/audit/gradients/gradient-quantities.js';
import { decodeTensor } from '../../../../../src/formats/index.js';
import { lazily } from '../../../../../src/reuse.js';
import { scoreLaw } from '../../../../../src/problem/index.js';
import { filledProblem, tensor } from '../../../../setup/problems.js';
import { expectAlike } from '../../definitions/random-pairs.js';
import { bellShaped } from '../../gradient-case.js';

const [batch, heads, kvHeads, queries, keys, qkDim, vDim] = [2, 4, 2, 3, 5, 2, 3] as const;
const groupSize = heads / kvHeads;
const rows = batch * heads * queries;
const groups = batch * kvHeads;

type Name = 'dq' | 'dk' | 'dv';

const columns = { dq: qkDim, dk: qkDim, dv: vDim } as const;

const drawn = lazily(() => {
  const random = bellShaped(3);
  const problem = filledProblem({ batch, heads, kvHeads, queries, keys, dim: qkDim, vDim }, random);
  const dout = tensor('bf16', [batch, heads, queries, vDim], random);
  const premises = anyGradientPremises(problem, 'fp64');
  const given = { out: null, lse: null };
  return { problem, dout, measured: measureGradients(problem, dout, { premises, given }) };
});

/** What a pass does in another way than the textbook. */
interface Pass {
  readonly scale?: number;
  /** The heads of K and V that a head reads, and that its dK and dV are added to. */
  readonly reads?: (head: number) => number;
  readonly addsTo?: (head: number) => number;
  /** The row that a row of dQ is written to. */
  readonly writes?: (row: number) => number;
  readonly deltaFactor?: number;
}

const ownHead = (head: number) => Math.floor(head / groupSize);

/** The gradients of a pass, and the squares of the sizes of their terms, by the textbook. */
function textbook({ scale, reads = ownHead, addsTo = ownHead, writes, deltaFactor = 1 }: Pass) {
  const { problem, dout, measured } = drawn();
  const [q, k, v, dO] = [problem.q, problem.k, problem.v, dout].map((one) => decodeTensor(one));
  const numbers = (length: number) => new Float64Array(length);
  const make = () => ({
    dq: numbers(q.length),
    dk: numbers(k.length),
    dv: numbers(v.length),
  });
  const [values, sizes, squares] = [make(), make(), make()];
  const dot = (a: Float64Array, i: number, b: Float64Array, j: number, dim: number) => {
    let sum = 0;
    for (let c = 0; c < dim; c++) sum += a[i * dim + c] * b[j * dim + c];
    return sum;
  };
  const used = scale ?? problem.scale;
  const add = (name: Name, to: number, [factor, size]: readonly number[], row: Float64Array) =>
    row.forEach((x, c) => {
      const at = to * columns[name] + c;
      values[name][at] += factor * x;
      sizes[name][at] += Math.abs(size * x);
      squares[name][at] += (size * x) ** 2;
    });
  for (let row = 0; row < rows; row++) {
    const head = Math.floor(row / queries);
    const D = measured.mean.values[row] * deltaFactor;
    const ofD = Math.max(Math.abs(D), measured.mean.magnitude[row]);
    for (let j = 0; j < keys; j++) {
      const [from, to] = [reads(head) * keys + j, addsTo(head) * keys + j];
      const P = Math.exp(used * dot(q, row, k, from, qkDim) - measured.reference.denominator[row]);
      const dP = dot(dO, row, v, from, vDim);
      const dS = [used * P * (dP - D), used * P * (Math.abs(dP) + ofD)] as const;
      const of = (all: Float64Array, at: number, dim: number) =>
        all.subarray(at * dim, (at + 1) * dim);
      add('dq', writes?.(row) ?? row, dS, of(k, from, qkDim));
      add('dk', to, dS, of(q, row, qkDim));
      add('dv', to, [P, P], of(dO, row, vDim));
    }
  }
  return { values, sizes, squares };
}

/** A failed audit of some gradients, and how many passes were taken. */
function failedOf(given: Readonly<Partial<Record<Name, Float64Array>>>, order = allOrder) {
  const { problem, dout, measured } = drawn();
  const failed = {
    problem,
    dout,
    measured,
    given: gradientQuantities.flatMap((quantity) => {
      const values = given[quantity.name];
      return values === undefined ? [] : [{ quantity, format: 'fp64', values }];
    }),
  } as unknown as FailedGradients;
  let taken = 0;
  let most = Infinity;
  const budget = {
    takes: (passes: number) => {
      taken += passes;
      return taken <= most;
    },
    isSpent: () => false,
  };
  const of: Replayed = {
    failed,
    operands: backwardOperands(problem, dout),
    budget,
    stored: null,
    scope: null,
    order,
  };
  return { of, taken: () => taken, allow: (passes: number) => (most = passes) };
}

const allOrder = { groups: [2, 0, 3, 1], rows: [7, 0, 23] };

const swapped = (head: number) => (head + 1) % groups;
const next = (row: number) => (row + 1) % rows;

/** Changes of a pass, and what a pass does so. */
const passes: Readonly<Record<string, () => readonly [BackwardChange, Pass]>> = {
  'no change': () => [{}, {}],
  'another scale': () => {
    const { problem } = drawn();
    return [{ law: { ...scoreLaw(problem), scale: -0.4 } }, { scale: -0.4 }];
  },
  'another D': () => [
    { delta: drawn().measured.mean.values.map((x) => 1.5 * x) },
    { deltaFactor: 1.5 },
  ],
  'other heads of K and V': () => {
    const reads = (head: number) => swapped(ownHead(head));
    return [{ kvHead: reads }, { reads }];
  },
  'dK and dV of other heads': () => {
    const addsTo = (head: number) => swapped(ownHead(head));
    return [{ addedTo: addsTo }, { addsTo }];
  },
  'dQ in other rows': () => [
    { written: { dq: { to: next, from: (row) => (row + rows - 1) % rows } } },
    { writes: next },
  ],
};

/** All choices of gradients. */
const choices: readonly (readonly Name[])[] = [
  ['dq'],
  ['dk'],
  ['dv'],
  ['dq', 'dk'],
  ['dk', 'dv'],
  ['dq', 'dk', 'dv'],
];

describe.each(Object.entries(passes))('the replay of a pass with %s', (_, make) => {
  const made = lazily(() => {
    const [change, pass] = make();
    return { change, ...textbook(pass) };
  });

  it.each(choices.map((chosen) => ({ chosen })))('is that of the given $chosen', ({ chosen }) => {
    const { change, values, sizes, squares } = made();
    const { measured } = drawn();
    const { of, taken } = failedOf(Object.fromEntries(chosen.map((n) => [n, values[n]])));
    const found = replay(of, change)!;
    expect(Object.keys(found.predicted)).toEqual(chosen);
    expect(found.isShifted).toBe(false);
    const ofRows = chosen.includes('dq') ? allOrder.rows.length / rows : 0;
    expect(taken()).toBeCloseTo(1 + ofRows, 10);
    for (const name of chosen)
      values[name].forEach((x, i) => {
        const what = `${name} ${i}`;
        const scale = sizes[name][i];
        expect(Math.abs(found.predicted[name]![i] - x) <= 2 ** -40 * scale, what).toBe(true);
        expectAlike(found.sizes[name]![i], scale, what);
        const own = measured.gradients[name].exact.values[i];
        const isOther = Math.abs(x - own) > 2 ** -20 * Math.abs(own);
        const spread = isOther ? (2 ** -53 / Math.sqrt(3)) * Math.sqrt(squares[name][i]) : 0;
        expectAlike(found.wider[name]!.deviation[i], spread, what);
        expect(found.wider[name]!.total[i]).toBe(0);
      });
  });

  it('is none where an element of any gradient is off', () => {
    const { change, values } = made();
    const isWritten = change.written !== undefined || change.addedTo !== undefined;
    for (const chosen of choices)
      for (const name of chosen)
        for (const group of allOrder.groups) {
          const size = values[name].length / groups;
          const off = values[name].map((x, i) => (i === group * size + 1 ? x + 9 : x));
          const given = Object.fromEntries(chosen.map((n) => [n, n === name ? off : values[n]]));
          const { of, taken } = failedOf(given, { ...allOrder, rows: [] });
          expect(replay(of, change)).toBeNull();
          const tried = isWritten ? groups : allOrder.groups.indexOf(group) + 1;
          expect(taken()).toBeCloseTo(tried / groups, 10);
        }
    // A row that is tried first is enough.
    const off = values.dq.map((x, i) => (i === 23 * qkDim ? x + 9 : x));
    const { of, taken } = failedOf({ dq: off });
    expect(replay(of, change)).toBeNull();
    expect(taken()).toBeCloseTo(3 / rows, 10);
  });

  it('is none where the budget ends before it', () => {
    const { change, values } = made();
    for (const most of [0, 2.5 / rows, 3.5 / rows, 0.9 + 3 / rows]) {
      const { of, allow } = failedOf(values);
      allow(most);
      expect(replay(of, change)).toBeNull();
    }
  });

  it('is what a way makes of the whole', () => {
    const { change, values, sizes } = made();
    const { of, taken } = failedOf(values);
    const found = replayWay(of, change);
    expect(taken()).toBe(1);
    for (const name of ['dq', 'dk', 'dv'] as const)
      values[name].forEach((x, i) => {
        expect(Math.abs(found[name]![i] - x) <= 2 ** -40 * sizes[name][i], name).toBe(true);
      });
  });
});
