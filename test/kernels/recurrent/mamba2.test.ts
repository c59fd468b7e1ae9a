import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  applicableFaults,
  mamba2Faults,
  runRecurrence,
  unrounded,
} from '../../../kernels/index.js';
import { recurrentGradients, recurrentOracle } from '../../../oracles/index.js';
import { testSeed, scaled } from '../../setup/effort.js';
import { mamba2Problem } from '../../setup/mamba2-problems.js';
import { drawnInputs } from '../../oracles/recurrent/drawn-recurrences.js';
import { exactChunked, exactRecurrent } from './arithmetics.js';

function difference(one: Float64Array, other: Float64Array): number {
  const size = other.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-300);
  return one.reduce((most, x, i) => Math.max(most, Math.abs(x - other[i])), 0) / size;
}

it.each([
  ['token by token', exactRecurrent],
  ['in chunks of 3', exactChunked(3)],
  ['in chunks of 16', exactChunked(16)],
])("computes Mamba-2's outputs and final states %s", (_, arithmetic) => {
  const drawn = fc.record({
    seed: fc.nat(2 ** 31),
    lengths: fc.array(fc.nat(40), { minLength: 1, maxLength: 3 }),
    groups: fc.integer({ min: 1, max: 2 }),
    has: fc.record({
      d: fc.boolean(),
      z: fc.boolean(),
      dtBias: fc.boolean(),
      softplus: fc.boolean(),
    }),
    hasWideD: fc.boolean(),
    dtLimit: fc.constantFrom<[number, number]>([0, Infinity], [0.01, 0.1]),
  });
  fc.assert(
    fc.property(drawn, (one) => {
      const problem = mamba2Problem(one);
      const { out, finalState } = recurrentOracle(problem);
      const results = runRecurrence(problem, arithmetic, unrounded);
      expect(difference(results.out!, out.values)).toBeLessThan(1e-12);
      expect(difference(results.final_state!, finalState.values)).toBeLessThan(1e-12);
    }),
    { seed: testSeed, numRuns: scaled(30) },
  );
});

it.each([
  ['token by token', exactRecurrent],
  ['in chunks of 16', exactChunked(16)],
])("computes the gradients of Mamba-2's inputs %s", (_, arithmetic) => {
  const drawn = fc.record({
    seed: fc.nat(2 ** 31),
    lengths: fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 2 }),
    groups: fc.integer({ min: 1, max: 2 }),
    has: fc.record({
      d: fc.boolean(),
      dtBias: fc.boolean(),
      softplus: fc.boolean(),
      z: fc.constant(false),
    }),
    hasWideD: fc.boolean(),
    dtLimit: fc.constantFrom<[number, number]>([0, Infinity], [0.01, 0.1]),
  });
  fc.assert(
    fc.property(drawn, (one) => {
      const problem = mamba2Problem(one);
      const gradientInputs = drawnInputs(problem, one.seed);
      const { quantities } = recurrentGradients(problem, gradientInputs);
      const results: Readonly<Partial<Record<string, Float64Array>>> = runRecurrence(
        problem,
        arithmetic,
        unrounded,
        { gradientInputs },
      );
      for (const [name, { values }] of Object.entries(quantities))
        expect([name, difference(results[name]!, values) < 1e-11]).toEqual([name, true]);
    }),
    { seed: testSeed, numRuns: scaled(20) },
  );
});

it('has faults with names and sentences of their own, which no other problem has', () => {
  expect(new Set(mamba2Faults.map(({ id }) => id)).size).toBe(21);
  expect(new Set(mamba2Faults.map(({ sentence }) => sentence)).size).toBe(21);
  const { v, q, k } = mamba2Problem({ seed: 1 });
  const problem = { family: 'linear', v, q, k } as const;
  const given = { problem, chunk: 64, gradientInputs: { dout: v } };
  expect(applicableFaults(given).filter(({ isOutside }) => isOutside)).toEqual([]);
});

it('has faults of its own steps and those of recurrences, and each changes something', () => {
  const problem = mamba2Problem({
    seed: 11,
    lengths: [70, 30],
    groups: 2,
    stateDim: 8,
    headDim: 8,
    dtLimit: [0.3, 3],
    bias: 1,
  });
  const right = runRecurrence(problem, exactChunked(64), unrounded);
  const faults = applicableFaults({ problem, chunk: 64 });
  const own = faults.filter(({ isOutside }) => isOutside).map(({ id }) => id);
  expect(own).toContain('softplus-missing');
  expect(own).toHaveLength(17);
  expect(faults.map(({ id }) => id)).toContain('key-heads-interleaved');
  for (const fault of faults.filter(({ isOutside }) => isOutside)) {
    const wrong = runRecurrence(problem, exactChunked(64), unrounded, { fault });
    const isOther = difference(wrong.out!, right.out!) > 1e-3;
    expect([fault.id, isOther]).toEqual([fault.id, true]);
  }
});
