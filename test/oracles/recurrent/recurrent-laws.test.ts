import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { recurrentOracle } from '../../../oracles/index.js';
import type { RecurrentProblem } from '../../../src/problem/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { part, tokensOf } from './cut-recurrences.js';
import { drawnRecurrence, recurrence, tame, wild } from './drawn-recurrences.js';

const parameters = { seed: testSeed, numRuns: scaled(100) };

it('gives packed sequences what it gives each alone', () => {
  fc.assert(
    fc.property(drawnRecurrence(), (drawn) => {
      const problem = recurrence({ ...drawn, isPacked: true }, wild);
      const whole = recurrentOracle(problem);
      const outs: number[] = [];
      const states: number[] = [];
      const radii: number[] = [];
      whole.shape.sequences.forEach(({ first, end }, i) => {
        const state = problem.initialState && part(problem.initialState, 0, i, i + 1);
        const { out, finalState } = recurrentOracle(tokensOf(problem, first, end, state));
        outs.push(...out.values);
        states.push(...finalState.values);
        radii.push(...out.radius, ...finalState.radius);
      });
      expect(outs).toEqual([...whole.out.values]);
      expect(states).toEqual([...whole.finalState.values]);
      expect(radii.sort()).toEqual([...whole.out.radius, ...whole.finalState.radius].sort());
    }),
    parameters,
  );
});

it('gives a suffix that begins with the state of a prefix what it gives the whole', () => {
  fc.assert(
    fc.property(drawnRecurrence(), fc.double({ min: 0, max: 1, noNaN: true }), (drawn, share) => {
      const problem = recurrence({ ...drawn, isPacked: false, lengths: [drawn.lengths[0]] }, wild);
      const whole = recurrentOracle(problem);
      const { tokens } = whole.shape;
      const cut = Math.round(share * tokens);
      const prefix = recurrentOracle(tokensOf(problem, 0, cut, problem.initialState));
      const { valueHeads, keyDim, valueDim } = whole.shape;
      const state: Tensor = {
        format: 'fp64',
        shape: [1, valueHeads, keyDim, valueDim],
        data: prefix.finalState.values,
      };
      const suffix = recurrentOracle(tokensOf(problem, cut, tokens, state));
      expect([...prefix.out.values, ...suffix.out.values]).toEqual([...whole.out.values]);
      expect(suffix.finalState.values).toEqual(whole.finalState.values);
    }),
    parameters,
  );
});

it('is linear in values and initial state, within its radii', () => {
  fc.assert(
    fc.property(drawnRecurrence(), fc.nat(), (drawn, seed) => {
      const fp64 = { ...drawn, format: 'fp64', hasState: true } as const;
      const problem = recurrence(fp64, tame);
      const { v, initialState } = recurrence({ ...fp64, seed }, tame);
      // Multiples of 2^-20 add exactly.
      const grid = (tensor: Tensor) =>
        decodeTensor(tensor).map((x) => Math.round(x * 2 ** 20) * 2 ** -20);
      const combined = (one: Tensor, other: Tensor, factor: number): Tensor => {
        const added = grid(other);
        const data = grid(one).map((x, i) => x + factor * added[i]);
        return { format: 'fp64', shape: one.shape, data };
      };
      const solve = (factors: readonly [number, number]) => {
        const term = (one: Tensor, other: Tensor) =>
          combined(combined(one, one, factors[0] - 1), other, factors[1]);
        return recurrentOracle({
          ...problem,
          v: term(problem.v, v),
          initialState: term(problem.initialState as Tensor, initialState as Tensor),
        });
      };
      const [one, other, both] = [solve([1, 0]), solve([0, 1]), solve([3, -2])];
      for (const name of ['out', 'finalState'] as const)
        both[name].values.forEach((x, i) => {
          const rest = x - 3 * one[name].values[i] + 2 * other[name].values[i];
          const radius = both[name].radius[i] + 3 * one[name].radius[i] + 2 * other[name].radius[i];
          expect(Math.abs(rest)).toBeLessThanOrEqual(2 * radius);
        });
    }),
    parameters,
  );
});

it('writes nothing with a write strength of 0, and forgets with gates of −∞', () => {
  fc.assert(
    fc.property(drawnRecurrence('kda'), (drawn) => {
      const frame = { ...drawn, hasState: true, isPacked: false, lengths: [3] };
      const idle = recurrence(frame, { ...tame, strength: () => 0, gate: () => 0 });
      const { finalState } = recurrentOracle(idle);
      expect(finalState.values).toEqual(decodeTensor(idle.initialState as Tensor));
      expect(finalState.radius.every((r) => r === 0)).toBe(true);
      const forgetful = recurrence(frame, { ...tame, gate: () => -Infinity });
      const { initialState, ...fresh } = forgetful;
      expect(initialState).toBeDefined();
      expect(recurrentOracle(forgetful).finalState.values).toEqual(
        recurrentOracle(fresh).finalState.values,
      );
    }),
    parameters,
  );
});

it.each<[string, Partial<RecurrentProblem>]>([
  ['k has shape', { k: { format: 'fp32', shape: [1, 2, 1, 3], data: new Float32Array(6) } }],
  ['needs beta', { family: 'delta' }],
  ['has no g', { g: { format: 'fp32', shape: [1, 2, 1], data: new Float32Array(2) } }],
  ['cu_seqlens', { cuSeqlens: [0, 3] }],
  [
    'not finite',
    { v: { format: 'fp32', shape: [1, 2, 1, 2], data: new Float32Array(4).fill(NaN) } },
  ],
  ['epsilon', { normalisation: { epsilon: 0 } }],
])('refuses a problem whose message says "%s"', (message, change) => {
  const zeros = (...shape: number[]): Tensor => ({
    format: 'fp32',
    shape,
    data: new Float32Array(shape.reduce((a, b) => a * b)),
  });
  const plain: RecurrentProblem = {
    family: 'linear',
    q: zeros(1, 2, 1, 2),
    k: zeros(1, 2, 1, 2),
    v: zeros(1, 2, 1, 2),
    ...change,
  };
  expect(() => recurrentOracle(plain)).toThrow(message);
});
