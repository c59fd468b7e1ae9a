import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recurrentGradients } from '../../../oracles/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  Tensor,
} from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { loadMpfr } from '../mpfr.js';
import {
  drawnInputs,
  drawnRecurrence,
  families,
  recurrence,
  tame,
  wild,
} from './drawn-recurrences.js';
import { referenceGradients } from './reference-gradients.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();

/** No radius but 0 is below 2^-1000, and numbers stay below 2^200: this is exact beside them. */
const enough = 1300;

function assertWithinRadii(
  problem: RecurrentProblem,
  inputs: RecurrentGradientInputs,
  bits = enough,
): void {
  const { quantities } = recurrentGradients(problem, inputs);
  mpfr.withPrecision(bits, (arena) => {
    const reference = referenceGradients(problem, inputs, arena);
    for (const name of ['dq', 'dk', 'dv', 'dg', 'dbeta', 'dinitial_state'] as const) {
      const [found, exact] = [quantities[name], reference[name]];
      expect(found?.values.length).toBe(exact?.length);
      exact?.forEach((real, i) => {
        const { values = [], radius = [] } = found ?? {};
        if (!(arena.distance(real, values[i]) <= radius[i]))
          expect.fail(`${name}[${i}] = ${values[i]} ± ${radius[i]}, exact ${arena.toNumber(real)}`);
      });
    }
  });
}

const parameters = { seed: testSeed, numRuns: scaled(25) };

describe.each(families)('gradients of %s', (family) => {
  it('are within their radii', { timeout: 600_000 }, () => {
    fc.assert(
      fc.property(
        drawnRecurrence(family),
        fc.constantFrom(tame, wild),
        fc.nat(),
        (drawn, range, seed) => {
          const problem = recurrence(drawn, range);
          assertWithinRadii(problem, drawnInputs(problem, seed));
        },
      ),
      parameters,
    );
  });

  // Products that underflow and sums that overflow; numbers reach 2^12000 in exact arithmetic.
  inTurn('are within their radii at the ends of the range of fp64', { timeout: 600_000 }, () => {
    const exponent = fc.integer({ min: -600, max: 200 });
    fc.assert(
      fc.property(
        drawnRecurrence(family),
        fc.tuple(exponent, exponent, exponent, exponent),
        (drawn, [a, b, c, d]) => {
          const problem = recurrence({ ...drawn, format: 'fp64' }, wild);
          const { dout, dfinalState } = drawnInputs(problem, drawn.seed);
          const { q, k, v, initialState } = problem;
          const times = (one: Tensor, power: number): Tensor => {
            const data = decodeTensor(one).map((x) => x * 2 ** power);
            return { format: 'fp64', shape: one.shape, data };
          };
          const scaledProblem = {
            ...problem,
            q: times(q, a),
            k: times(k, b),
            v: times(v, c),
            ...(initialState && { initialState: times(initialState, a) }),
          };
          const dstate = dfinalState && { dfinalState: times(dfinalState, b) };
          assertWithinRadii(scaledProblem, { dout: times(dout, d), ...dstate }, 14_000);
        },
      ),
      { ...parameters, numRuns: scaled(10) },
    );
  });
});
