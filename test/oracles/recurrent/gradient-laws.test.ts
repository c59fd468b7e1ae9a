import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { recurrentGradients, recurrentOracle } from '../../../oracles/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import {
  recurrentFamilies,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type Tensor,
} from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { part, tokensOf } from './cut-recurrences.js';
import {
  drawnInputs,
  drawnRecurrence,
  recurrence,
  tame,
  wild,
  type DrawnRecurrence,
} from './drawn-recurrences.js';

const parameters = { seed: testSeed, numRuns: scaled(100) };

/** ⟨x, y⟩ of an exact tensor and a quantity, and what it errs by. */
function inner(
  exact: Tensor | undefined,
  quantity: { readonly values: Float64Array; readonly radius: Float64Array } | undefined,
): { readonly sum: number; readonly error: number } {
  let [sum, error] = [0, 0];
  if (exact === undefined || quantity === undefined) return { sum, error };
  const { values, radius } = quantity;
  decodeTensor(exact).forEach((x, i) => {
    const product = x * values[i];
    sum += product;
    error += Math.abs(x) * radius[i] + 2 ** -52 * values.length * Math.abs(product);
  });
  return { sum, error };
}

/** Whether sums of the terms on both sides are the same. */
function expectEqualSums(...sides: readonly (readonly ReturnType<typeof inner>[])[]): void {
  const [left, right] = sides.map((terms) => terms.reduce((sum, term) => sum + term.sum, 0));
  const error = sides.flat().reduce((sum, term) => sum + term.error, 0);
  expect(Math.abs(left - right)).toBeLessThanOrEqual(2 * error);
}

it('has sums that the linearity in values, initial states, queries and keys asks for', () => {
  fc.assert(
    fc.property(drawnRecurrence(), fc.constantFrom(tame, wild), (drawn, range) => {
      const problem = recurrence({ ...drawn, isNormalised: false }, range);
      const { dout, dfinalState } = drawnInputs(problem, drawn.seed);
      const { out, finalState } = recurrentOracle(problem);
      const {
        dq,
        dk,
        dv,
        dinitial_state: dstate,
      } = recurrentGradients(problem, {
        dout,
        dfinalState,
      }).quantities;
      const ofValues = inner(problem.v, dv);
      expectEqualSums(
        [inner(dout, out), inner(dfinalState, finalState)],
        [ofValues, inner(problem.initialState, dstate)],
      );
      if (!dfinalState) expectEqualSums([inner(dout, out)], [inner(problem.q, dq)]);
      const { write } = recurrentFamilies[problem.family];
      if (write === 'additive') expectEqualSums([inner(problem.k, dk)], [ofValues]);
    }),
    parameters,
  );
});

const tensorOf = (shape: readonly number[], data: Float64Array): Tensor => ({
  format: 'fp64',
  shape,
  data,
});

const names = ['dq', 'dk', 'dv', 'dg', 'dbeta'] as const;

it('gives prefix and suffix what it gives the whole, with the gradient of the state between', () => {
  fc.assert(
    fc.property(drawnRecurrence(), fc.double({ min: 0, max: 1, noNaN: true }), (drawn, share) => {
      const problem = recurrence({ ...drawn, isPacked: false, lengths: [drawn.lengths[0]] }, wild);
      const inputs = drawnInputs(problem, drawn.seed);
      const whole = recurrentGradients(problem, inputs);
      const { tokens, valueHeads, keyDim, valueDim } = whole.shape;
      const cut = Math.round(share * tokens);
      const stateShape = [1, valueHeads, keyDim, valueDim];
      const before = tokensOf(problem, 0, cut, problem.initialState);
      const state = tensorOf(stateShape, recurrentOracle(before).finalState.values);
      const suffix = recurrentGradients(tokensOf(problem, cut, tokens, state), {
        ...inputs,
        dout: part(inputs.dout, 1, cut, tokens),
      }).quantities;
      const dstate = tensorOf(stateShape, suffix.dinitial_state?.values ?? new Float64Array());
      const prefix = recurrentGradients(before, {
        dout: part(inputs.dout, 1, 0, cut),
        dfinalState: dstate,
      }).quantities;
      for (const name of names) {
        const joined = [prefix, suffix].flatMap((half) => [...(half[name]?.values ?? [])]);
        expect(joined).toEqual([...(whole.quantities[name]?.values ?? [])]);
      }
      expect(prefix.dinitial_state?.values).toEqual(whole.quantities.dinitial_state?.values);
    }),
    parameters,
  );
});

it('gives packed sequences what it gives each alone', () => {
  fc.assert(
    fc.property(drawnRecurrence(), (drawn) => {
      const problem = recurrence({ ...drawn, isPacked: true }, wild);
      const inputs = drawnInputs(problem, drawn.seed);
      const whole = recurrentGradients(problem, inputs);
      const alone = whole.shape.sequences.map(({ first, end }, i) => {
        const state = (of: Tensor | undefined) => of && part(of, 0, i, i + 1);
        const { quantities } = recurrentGradients(
          tokensOf(problem, first, end, state(problem.initialState)),
          { dout: part(inputs.dout, 1, first, end), dfinalState: state(inputs.dfinalState) },
        );
        return quantities;
      });
      for (const name of [...names, 'dinitial_state'] as const)
        for (const numbers of ['values', 'radius', 'magnitude'] as const)
          expect(alone.flatMap((one) => [...(one[name]?.[numbers] ?? [])])).toEqual([
            ...(whole.quantities[name]?.[numbers] ?? []),
          ]);
    }),
    parameters,
  );
});

it('has no gradient of what a gate of −∞ forgets, nor of the gate', () => {
  fc.assert(
    fc.property(drawnRecurrence('kda'), (drawn) => {
      const frame = { ...drawn, hasState: true, isPacked: false, lengths: [1] };
      const problem = recurrence(frame, { ...wild, gate: () => -Infinity });
      const { quantities } = recurrentGradients(problem, drawnInputs(problem, drawn.seed));
      expect(quantities.dg?.values.every((x) => x === 0)).toBe(true);
      for (const numbers of ['values', 'radius'] as const)
        expect(quantities.dinitial_state?.[numbers].every((x) => x === 0)).toBe(true);
    }),
    parameters,
  );
});

it('is finite on both sides of a gate of −∞ between numbers that overflow', () => {
  const half = 400;
  const frame: DrawnRecurrence = {
    family: 'gated-delta',
    lengths: [2 * half],
    isPacked: false,
    keyHeads: 1,
    groupSize: 1,
    keyDim: 7,
    valueDim: 1,
    format: 'fp64',
    isNormalised: true,
    hasState: false,
    seed: testSeed,
  };
  const problem = recurrence(frame, { ...tame, strength: () => 300, gate: () => 0 });
  problem.g?.data.fill(-Infinity, half, half + 1);
  const { dq, dv } = recurrentGradients(problem, drawnInputs(problem, testSeed)).quantities;
  // States overflow before the gate, their gradients after it.
  expect([dq.radius[7 * half - 1], dv.radius[half]]).toEqual([Infinity, Infinity]);
  expect(dq.radius[7 * half]).toBeLessThan(2 ** -35);
  expect(dv.radius[half - 1]).toBeLessThan(2 ** -35);
});

it('has the radius ∞ where a gradient of a normalised query is beyond fp64', () => {
  const one = (value: number) => tensor('fp64', [1, 1, 1, 1], () => value);
  const problem: RecurrentProblem = {
    family: 'linear',
    q: one(2 ** -500),
    k: one(1),
    v: one(2 ** 400),
    normalisation: { epsilon: 2 ** -900 },
  };
  const { dq } = recurrentGradients(problem, { dout: one(2 ** 180) }).quantities;
  expect(dq.radius[0]).toBe(Infinity);
});

it.each<[string, Partial<RecurrentGradientInputs>]>([
  ['dout has shape', { dout: tensor('fp32', [1, 2, 1, 3], () => 0) }],
  ['dfinal_state has shape', { dfinalState: tensor('fp32', [1, 2, 2], () => 0) }],
  ['an element of dout is not finite', { dout: tensor('fp32', [1, 2, 1, 2], () => NaN) }],
  ['of dfinal_state is not finite', { dfinalState: tensor('fp32', [1, 1, 2, 2], () => NaN) }],
])('refuses inputs whose message says "%s"', (message, change) => {
  const zeros = tensor('fp32', [1, 2, 1, 2], () => 0);
  const problem: RecurrentProblem = { family: 'linear', q: zeros, k: zeros, v: zeros };
  expect(() => recurrentGradients(problem, { dout: zeros, ...change })).toThrow(message);
});
