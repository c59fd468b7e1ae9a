import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { runRecurrence, unrounded } from '../../../kernels/recurrent/index.js';
import { recurrentGradients } from '../../../oracles/index.js';
import {
  recurrentQuantityNames,
  type RecurrentGradientInputs,
  type RecurrentProblem,
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

/** A problem, and the gradients to begin with. */
function drawnGradients(drawn: DrawnRecurrence): [RecurrentProblem, RecurrentGradientInputs] {
  const problem = recurrence(drawn, tame);
  const random = randomValues(drawn.seed + 1);
  const { v, initialState } = problem;
  const dout = tensor('fp64', v.shape, random.normal);
  if (!initialState) return [problem, { dout }];
  return [problem, { dout, dfinalState: tensor('fp64', initialState.shape, random.normal) }];
}

it('computes the gradients of the law token by token', () => {
  fc.assert(
    fc.property(drawn, (drawn) => {
      const [problem, gradientInputs] = drawnGradients(drawn);
      const results = runRecurrence(problem, exactRecurrent, unrounded, { gradientInputs });
      const { quantities } = recurrentGradients(problem, gradientInputs);
      for (const [name, quantity] of Object.entries(quantities)) {
        const values: Float64Array = quantity.values;
        const given = results[name as keyof typeof quantities] as Float64Array;
        expect(given.length).toBe(values.length);
        const size = values.reduce((most, x) => Math.max(most, Math.abs(x)), 1);
        given.forEach((x, i) => {
          if (!(Math.abs(x - values[i]) < 1e-11 * size))
            throw new Error(`${name} ${i}: ${x} ${values[i]}`);
        });
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
