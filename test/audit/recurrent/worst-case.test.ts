import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { runRecurrence } from '../../../kernels/index.js';
import { recurrentGradients, recurrentOracle } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { recurrentWorstCase } from '../../../src/audit/recurrent/bounds/index.js';
import { arithmeticsOf } from '../../../src/audit/recurrent/declared-arithmetics.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentQuantityName,
} from '../../../src/problem/index.js';
import {
  drawnRecurrence,
  recurrence,
  tame,
  wild,
  type DrawnRecurrence,
} from '../../oracles/recurrent/drawn-recurrences.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { directed, shortArithmetic } from './directed-roundings.js';
import { reachableErrors } from './reachable-error.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Gradients that a backward pass of the problem begins with. */
function gradientInputsOf(problem: RecurrentProblem, seed: number): RecurrentGradientInputs {
  const random = randomValues(seed + 1);
  return { dout: tensor('bf16', problem.v.shape, random.normal) };
}

/** Exact values and radii by quantity. */
function exactOf(problem: RecurrentProblem, inputs: RecurrentGradientInputs) {
  const { out, finalState } = recurrentOracle(problem);
  return { out, final_state: finalState, ...recurrentGradients(problem, inputs).quantities };
}

const longer = (drawn: DrawnRecurrence): fc.Arbitrary<DrawnRecurrence> =>
  fc
    .array(fc.nat(24), { minLength: 1, maxLength: 2 })
    .map((lengths) => ({ ...drawn, lengths, format: 'bf16' as const }));

/** Eight tokens of one head. */
const plain: DrawnRecurrence = {
  family: 'delta',
  lengths: [8],
  isPacked: false,
  keyHeads: 1,
  groupSize: 1,
  keyDim: 4,
  valueDim: 1,
  format: 'bf16',
  isNormalised: false,
  hasState: false,
  seed: 0,
};

const arithmetics = [
  ['token by token', shortArithmetic('recurrent', 1, 'fp32')],
  ['token by token, state in bf16', shortArithmetic('recurrent', 1, 'fp32', 'bf16')],
  ['in chunks of 4 in bf16', shortArithmetic('chunked', 4, 'bf16')],
  ['in chunks of 16 in bf16', shortArithmetic('chunked', 16, 'bf16')],
  ['in chunks of 8 in fp32, state in bf16', shortArithmetic('chunked', 8, 'fp32', 'bf16')],
] as const;

it.each(arithmetics)('holds for roundings in any direction, %s', (_, arithmetic) => {
  fc.assert(
    fc.property(drawnRecurrence().chain(longer), fc.nat(2 ** 31), (drawn, seed) => {
      const problem = recurrence(drawn, tame);
      const gradientInputs = gradientInputsOf(problem, seed);
      const bounds = recurrentWorstCase(problem, arithmetic, { gradientInputs });
      const exact = exactOf(problem, gradientInputs);
      const random = randomValues(seed);
      const rounding = directed(arithmetic, () => (random.uniform() < 0.5 ? -1 : 1));
      const results = runRecurrence(problem, arithmetic, rounding, { gradientInputs });
      for (const [name, { values, radius }] of Object.entries(exact)) {
        const got = results[name as RecurrentQuantityName];
        const bound = bounds[name as RecurrentQuantityName];
        expect(bound?.length, name).toBe(values.length);
        if (!got || !bound) continue;
        const worst = values.findIndex((x, i) => !(Math.abs(got[i] - x) <= bound[i] + radius[i]));
        expect(worst, `${name}[${worst}]: ${got[worst]}, ${values[worst]} ± ${bound[worst]}`).toBe(
          -1,
        );
      }
    }),
    { seed: testSeed, numRuns: scaled(60) },
  );
});

it('holds where the scale is negative and the final state has a gradient', () => {
  const problem = { ...recurrence({ ...plain, lengths: [20], valueDim: 4 }, tame), scale: -0.7 };
  const random = randomValues(testSeed);
  const gradientInputs = {
    dout: tensor('bf16', problem.v.shape, random.normal),
    dfinalState: tensor('fp32', [1, 1, 4, 4], random.normal),
  };
  const exact = exactOf(problem, gradientInputs);
  for (const [, arithmetic] of arithmetics) {
    const bounds = recurrentWorstCase(problem, arithmetic, { gradientInputs });
    const rounding = directed(arithmetic, () => (random.uniform() < 0.5 ? -1 : 1));
    const results = runRecurrence(problem, arithmetic, rounding, { gradientInputs });
    for (const [name, { values, radius }] of Object.entries(exact)) {
      const [got, bound] = [results, bounds].map((of) => of[name as RecurrentQuantityName]);
      const outside = values.filter((x, i) => !(Math.abs(got![i] - x) <= bound![i] + radius[i]));
      expect(outside, name).toEqual(new Float64Array(0));
    }
  }
});

it('is never NaN nor negative', () => {
  fc.assert(
    fc.property(drawnRecurrence(), fc.constantFrom(...arithmetics), (drawn, [, arithmetic]) => {
      const problem = recurrence(drawn, wild);
      const gradientInputs = gradientInputsOf(problem, drawn.seed);
      const bounds = recurrentWorstCase(problem, arithmetic, { gradientInputs });
      for (const bound of Object.values(bounds)) expect(bound.every((x) => x >= 0)).toBe(true);
    }),
    { seed: testSeed, numRuns: scaled(60) },
  );
});

/** What roundings that all move one output the same way move it by, as a share of its bound. */
function adversary(problem: RecurrentProblem, form: 'recurrent' | 'chunked') {
  const arithmetic = shortArithmetic(form, 4, 'bf16');
  const at = problem.v.data.length - 1;
  let count = 0;
  const run = (direction: (index: number) => number) =>
    runRecurrence(problem, arithmetic, directed(arithmetic, direction)).out?.[at] ?? NaN;
  const exact = run(() => (count++, 0));
  const signs = Array.from({ length: count }, (_, k) =>
    Math.sign(run((index) => (index === k ? 1 : 0)) - exact),
  );
  const moved = Math.abs(run((index) => signs[index]) - exact);
  return moved / (recurrentWorstCase(problem, arithmetic).out?.[at] ?? NaN);
}

// Of one problem the share is anything: decays of a tensor core's tf32, which the model does not cut, may be all of a bound.
inTurn.each([
  ['linear', 'chunked', 0.9],
  ['retention', 'chunked', 0.6],
  ['gla', 'chunked', 0.25],
  ['delta', 'chunked', 0.6],
  ['gated-delta', 'chunked', 0.6],
  ['delta', 'recurrent', 0.12],
] as const)(
  'is never exceeded and by the median of nine problems reached in good part by roundings against one output: %s, %s',
  (family, form, share) => {
    const reached = Array.from({ length: 9 }, (_, i) =>
      adversary(recurrence({ ...plain, family, seed: testSeed + 5 + i }, tame), form),
    ).sort((a, b) => a - b);
    expect(reached[8]).toBeLessThanOrEqual(1);
    expect(reached[4]).toBeGreaterThan(share);
  },
);

inTurn.each(['delta', 'gated-delta'] as const)(
  'is at least what is reachable to first order, and little more: %s in chunks',
  (family) => {
    const problem = recurrence(
      { ...plain, family, lengths: [48], keyDim: 16, valueDim: 4, seed: testSeed },
      tame,
    );
    const [arithmetic] = arithmeticsOf(problem, { form: 'chunked', chunk: 16 });
    const places = Array.from({ length: 48 * 4 }, (_, i) => [Math.floor(i / 4), i % 4] as const);
    const bounds = recurrentWorstCase(problem, arithmetic).out!;
    const reachable = reachableErrors(problem, arithmetic, places);
    const ratios = reachable.map((x, i) => bounds[i] / x).sort((x, y) => x - y);
    expect(ratios[0]).toBeGreaterThanOrEqual(1);
    expect(ratios[ratios.length / 2]).toBeLessThan(1.2);
  },
);

/** Whether a kernel that leaves out the write of one token is outside of a bound. */
function seesLostWrite(form: 'recurrent' | 'chunked', seed: number): boolean {
  const arithmetic = shortArithmetic(form, 4, 'bf16');
  const problem = recurrence({ ...plain, seed }, tame);
  const strengths = (lost: number) => tensor('bf16', [1, 8, 1], (i) => (i === lost ? 0 : 1));
  const whole = { ...problem, beta: strengths(-1) };
  const faulty = { ...problem, beta: strengths(2) };
  const { out } = runRecurrence(
    faulty,
    arithmetic,
    directed(arithmetic, () => 0),
  );
  const { values, radius } = recurrentOracle(whole).out;
  const bounds = recurrentWorstCase(whole, arithmetic).out;
  return values.some(
    (x, i) => Math.abs((out?.[i] ?? x) - x) > (bounds?.[i] ?? Infinity) + radius[i],
  );
}

// A key may be so short that its write is within what others are rounded by.
it.each(['recurrent', 'chunked'] as const)(
  'sees most kernels that leave out a write: %s',
  (form) => {
    const seen = Array.from({ length: 40 }, (_, i) => seesLostWrite(form, testSeed + i));
    expect(seen.filter(Boolean).length).toBeGreaterThan(28);
  },
);

it('goes by the number of a head where a problem has some heads of another', () => {
  const heads = (count: number, firstHead: number): RecurrentProblem => {
    const random = randomValues(3);
    const of = (dim: number) => tensor('bf16', [1, 40, count, dim], random.normal);
    return { family: 'retention', q: of(8), k: of(8), v: of(4), firstHead };
  };
  const bounds = [0, 3].map((first) => {
    const { out } = recurrentWorstCase(heads(1, first), shortArithmetic('chunked', 16, 'bf16'));
    return out!.reduce((sum, x) => sum + x, 0);
  });
  // A head that forgets less has larger states, which err by more.
  expect(bounds[1]).toBeGreaterThan(1.2 * bounds[0]);
});
