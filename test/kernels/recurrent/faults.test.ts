import { describe, expect, it } from 'vitest';
import {
  recurrentFaults,
  recurrentModels,
  roundingTo,
  runRecurrence,
  unrounded,
  type RecurrentArithmetic,
  type RecurrentFault,
} from '../../../kernels/recurrent/index.js';
import {
  recurrentQuantityNames,
  type RecurrentFamily,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { tensor } from '../../setup/problems.js';
import { exactChunked, exactRecurrent } from './arithmetics.js';
import { recurrence, type Range } from '../../oracles/recurrent/drawn-recurrences.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);
type Results = RecurrentResults<Float64Array>;

/** Gates between −0.2 and 0, some lower, strengths between 0.1 and 1, keys of length 1.3 or so: nothing is forgotten at once. */
const mild: Range = {
  gate: (uniform) => (uniform > 0.98 ? -7 : -0.2 * uniform ** 2),
  strength: (uniform) => 0.1 + 0.9 * uniform,
  keySize: (keyDim) => 1.3 / Math.sqrt(3 * keyDim),
};

interface Case {
  readonly problem: RecurrentProblem;
  readonly gradientInputs: RecurrentGradientInputs;
  readonly chunk: number;
}

/** Problems in which all is there that a fault could touch: packed sequences, groups, states, ragged tails, several chunks. */
function caseOf(
  family: RecurrentFamily,
  {
    isPacked = true,
    isNormalised = false,
    groupSize = 2,
    valueDim = 20,
    chunk = 32,
    hasLoss = true,
    scale = NaN,
    lengths = [43, 20, 37],
    gate = mild.gate,
  } = {},
): Case {
  const drawn = recurrence(
    {
      family,
      lengths,
      isPacked,
      keyHeads: 2,
      groupSize,
      keyDim: 20,
      valueDim,
      format: 'bf16',
      isNormalised,
      hasState: true,
      seed: 7,
    },
    { ...mild, gate },
  );
  const problem = { ...drawn, ...(scale > 0 && { scale }) };
  const random = randomValues(8);
  const states = problem.initialState?.shape ?? [];
  const dout = tensor('bf16', problem.v.shape, random.normal);
  const dfinalState = tensor('fp32', states, random.normal);
  return { problem, gradientInputs: { dout, ...(hasLoss && { dfinalState }) }, chunk };
}

const cases: readonly Case[] = [
  caseOf('gated-delta'),
  caseOf('kda', { isNormalised: true }),
  caseOf('gla', { valueDim: 12, hasLoss: false }),
  caseOf('retention', { isPacked: false, groupSize: 1, scale: 0.3 }),
];

const chunkedOf = ({ problem, chunk }: Case): RecurrentArithmetic =>
  recurrentModels[1].arithmetic(problem, { chunk });

/** Root mean square of a quantity's values, or of their differences. */
function sizeOf(values: Float64Array, others?: Float64Array): number {
  const squares = values.reduce((sum, x, i) => sum + (x - (others?.[i] ?? 0)) ** 2, 0);
  return Math.sqrt(squares / Math.max(1, values.length));
}

/** The largest difference of two results, relative to the sizes of quantities. */
function distance(one: Results, other: Results, exact: Results): number {
  return recurrentQuantityNames.reduce((most, name) => {
    const [a, b, size] = [one[name], other[name], exact[name]];
    return a && b && size ? Math.max(most, sizeOf(a, b) / (sizeOf(size) || 1)) : most;
  }, 0);
}

function run({ problem, gradientInputs, ...rest }: Case, fault?: RecurrentFault): Results {
  const arithmetic = chunkedOf({ problem, gradientInputs, ...rest });
  return runRecurrence(problem, arithmetic, unrounded, { gradientInputs, fault });
}

const exact = cases.map((one) => run(one));
const predictions = cases.map((one) =>
  recurrentFaults
    .filter((fault) => fault.appliesTo(one))
    .map((fault) => ({ fault, results: run(one, fault) })),
);

it('has more than forty faults, each with a name and a sentence of its own', () => {
  expect(recurrentFaults.length).toBeGreaterThan(40);
  expect(new Set(recurrentFaults.map(({ id }) => id)).size).toBe(recurrentFaults.length);
  expect(new Set(recurrentFaults.map(({ sentence }) => sentence)).size).toBe(
    recurrentFaults.length,
  );
});

/** Faults that change less than the roundings of this arithmetic: of formats as short as those of others of its values, and of epsilon. */
const fine = [
  'gates-clamped',
  'inverse-fp8',
  'initial-state-bf16',
  'epsilon-of-other-size',
  'epsilon-beside-norm',
  'gates-bf16',
  'decays-bf16',
  'state-bf16',
  'state-fp16',
  'final-state-bf16',
  'state-bf16-in-gradients',
];

/** What kernels without a fault compute, with their roundings. */
const rounded = cases.map((one) => {
  const arithmetic = chunkedOf(one);
  const { problem, gradientInputs } = one;
  return runRecurrence(problem, arithmetic, roundingTo(arithmetic), { gradientInputs });
});

it.each(recurrentFaults.map((fault) => [fault.id, fault] as const))(
  'changes results by more than rounding where a kernel has the fault %s',
  (id, fault) => {
    const changes = predictions.flatMap((entries, i) => {
      const results: Results = entries.find((entry) => entry.fault === fault)?.results ?? {};
      return recurrentQuantityNames.map((name) => {
        const [right, wrong, kernel] = [exact[i][name], results[name], rounded[i][name]];
        if (!right || !wrong || !kernel) return 0;
        const unit = fine.includes(id) ? 1e-9 * sizeOf(right) : sizeOf(kernel, right);
        return sizeOf(wrong, right) / unit;
      });
    });
    expect(Math.max(...changes)).toBeGreaterThan(3);
  },
);

describe('on a problem', () => {
  inTurn.each(cases.map((one, i) => [one.problem.family, i] as const))(
    'of %s, tells each fault that changes anything from all others',
    (_, i) => {
      const alike: string[] = [];
      const shown = predictions[i].filter(
        ({ results }) => distance(results, exact[i], exact[i]) > 1e-9,
      );
      shown.forEach(({ fault, results }, a) => {
        for (const other of shown.slice(a + 1)) {
          const apart = distance(results, other.results, exact[i]);
          if (!(apart > 1e-9)) alike.push(`${fault.id} = ${other.fault.id}`);
        }
      });
      expect(alike).toEqual([]);
    },
  );
});

/** Faults of the formats of values, which the two forms do not have at the same places. */
const ofFormats = [
  'gates-bf16',
  'decays-bf16',
  'state-bf16',
  'state-fp16',
  'state-bf16-in-gradients',
];

inTurn.each(['gated-delta', 'kda'] as const)(
  'predicts the same from both forms, of %s with decays of 0 too',
  (family) => {
    const forgetful = (uniform: number) => (uniform > 0.97 ? -Infinity : mild.gate(uniform));
    const one = caseOf(family, { lengths: [5, 70], gate: forgetful, chunk: 64 });
    const { gradientInputs } = one;
    for (const fault of recurrentFaults.filter((fault) => fault.appliesTo(one))) {
      if (ofFormats.includes(fault.id)) continue;
      const [right, other] = [exactRecurrent, exactChunked(64)].map((arithmetic) =>
        runRecurrence(one.problem, arithmetic, unrounded, { gradientInputs, fault }),
      );
      expect([fault.id, distance(other, right, right) < 1e-9]).toEqual([fault.id, true]);
    }
  },
);
