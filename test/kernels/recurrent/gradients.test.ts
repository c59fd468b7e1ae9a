import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { runRecurrence, unrounded } from '../../../kernels/recurrent/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import {
  recurrentQuantityNames,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type Tensor,
} from '../../../src/problem/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import {
  drawnRecurrence,
  recurrence,
  tame,
  type DrawnRecurrence,
} from '../../oracles/recurrent/drawn-recurrences.js';
import { exactChunked, exactRecurrent } from './arithmetics.js';

const parameters = { seed: testSeed, numRuns: scaled(40) };

const drawn = drawnRecurrence().chain((drawn) =>
  fc
    .array(fc.nat(20), { minLength: 1, maxLength: 3 })
    .map((lengths) => ({ ...drawn, lengths, format: 'fp64' as const })),
);

/** A problem in fp64, as differences need it, and the gradients to begin with. */
function drawnGradients(drawn: DrawnRecurrence): [RecurrentProblem, RecurrentGradientInputs] {
  const { normalisation, ...plain } = recurrence(drawn, tame);
  // A large epsilon: next to one that is small, differences of short vectors are no slopes.
  const problem = { ...plain, ...(normalisation && { normalisation: { epsilon: 0.1 } }) };
  const random = randomValues(drawn.seed + 1);
  const { v, initialState } = problem;
  const dout = tensor('fp64', v.shape, random.normal);
  if (!initialState) return [problem, { dout }];
  return [problem, { dout, dfinalState: tensor('fp64', initialState.shape, random.normal) }];
}

/** ⟨dO, O⟩ + ⟨dS_T, S_T⟩. */
function loss(problem: RecurrentProblem, { dout, dfinalState }: RecurrentGradientInputs): number {
  const { out, final_state } = runRecurrence(problem, exactRecurrent, unrounded);
  const sum = (values: Float64Array | undefined, weights: Tensor | undefined) =>
    weights
      ? decodeTensor(weights).reduce((all, w, i) => all + w * (values as Float64Array)[i], 0)
      : 0;
  return sum(out, dout) + sum(final_state, dfinalState);
}

const inputs = {
  dq: 'q',
  dk: 'k',
  dv: 'v',
  dg: 'g',
  dbeta: 'beta',
  dinitial_state: 'initialState',
} as const;

it('computes the gradients that differences of the forward pass give, token by token', () => {
  fc.assert(
    fc.property(drawn, (drawn) => {
      const [problem, given] = drawnGradients(drawn);
      const results = runRecurrence(problem, exactRecurrent, unrounded, { gradientInputs: given });
      const random = randomValues(drawn.seed + 2);
      for (const [name, input] of Object.entries(inputs) as [
        keyof typeof inputs,
        (typeof inputs)['dq'],
      ][]) {
        const values = problem[input];
        if (!values) continue;
        const exact = decodeTensor(values);
        const direction = exact.map(() => random.normal());
        const moved = (step: number) =>
          loss(
            {
              ...problem,
              [input]: tensor('fp64', values.shape, (i) => exact[i] + step * direction[i]),
            },
            given,
          );
        const step = 1e-5;
        const difference = (moved(step) - moved(-step)) / (2 * step);
        const gradient = results[name] as Float64Array;
        const terms = gradient.map((x, i) => x * direction[i]);
        const slope = terms.reduce((a, b) => a + b, 0);
        const size = terms.reduce((a, b) => a + Math.abs(b), 0);
        expect(Math.abs(difference - slope)).toBeLessThan(1e-6 * size + 1e-6);
      }
    }),
    parameters,
  );
});

it.each([
  ['1', exactChunked(1)],
  ['3', exactChunked(3)],
  ['4, inverted by blocks of 2', exactChunked(4, { block: 2 })],
  ['16', exactChunked(16)],
  ['64', exactChunked(64)],
])('computes the same gradients in chunks of %s as token by token', (_, arithmetic) => {
  fc.assert(
    fc.property(drawn, (drawn) => {
      const [problem, gradientInputs] = drawnGradients(drawn);
      const one = runRecurrence(problem, exactRecurrent, unrounded, { gradientInputs });
      const other = runRecurrence(problem, arithmetic, unrounded, { gradientInputs });
      for (const name of recurrentQuantityNames) {
        const [values, others] = [one[name], other[name]];
        expect(others?.length).toBe(values?.length);
        if (!values || !others) continue;
        const size = values.reduce((most, x) => Math.max(most, Math.abs(x)), 1);
        values.forEach((x, i) => {
          if (!(Math.abs(x - others[i]) < 1e-11 * size))
            throw new Error(`${name} ${i}: ${x} ${others[i]}`);
        });
      }
    }),
    parameters,
  );
});
