import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { recurrentOracle } from '../../../oracles/index.js';
import type { RecurrentProblem } from '../../../src/problem/index.js';
import { advanceErrors, roundingsOfProblem } from '../../../oracles/recurrent/radius.js';
import { randomValues } from '../../../properties/problems/values.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { loadMpfr } from '../mpfr.js';
import { referenceRecurrence } from './reference-recurrence.js';

const mpfr = await loadMpfr();
const parameters = { seed: testSeed, numRuns: scaled(100) };

/** The largest share of the radii that errors take; above 1 is a refutation. */
function shareOfRadius(problem: RecurrentProblem, quantity: 'out' | 'finalState'): number {
  const { values, radius } = recurrentOracle(problem)[quantity];
  return mpfr.withPrecision(1200, (arena) =>
    referenceRecurrence(problem, arena)[quantity].reduce(
      (share, exact, i) => Math.max(share, arena.distance(exact, values[i]) / radius[i]),
      0,
    ),
  );
}

/** Problems in which one term of the radius carries an error that the other terms do not. */
describe('a term of the radius alone holds', () => {
  let [gates, normalised] = [0, 0];
  const sums = { out: 0, finalState: 0 };
  // A radius that errors never come near might as well be a number that is too large.
  afterAll(() => {
    expect(gates).toBeGreaterThan(0.1);
    expect(sums.out).toBeGreaterThan(0.05);
    expect(sums.finalState).toBeGreaterThan(0.01);
    expect(normalised).toBeGreaterThan(0.2);
  });

  it('decays of a state to which nothing is added', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const random = randomValues(seed);
        const gate = -690 * random.uniform();
        const share = shareOfRadius(
          {
            family: 'simple-gla',
            q: tensor('fp32', [1, 1, 1, 1], () => 1),
            k: tensor('fp32', [1, 1, 1, 1], () => 1),
            v: tensor('fp32', [1, 1, 1, 1], () => 0),
            g: tensor('fp64', [1, 1, 1], () => gate),
            initialState: tensor('fp64', [1, 1, 1, 1], random.normal),
          },
          'out',
        );
        expect(share).toBeLessThanOrEqual(1);
        gates = Math.max(gates, share);
      }),
      parameters,
    );
  });

  it.each(['out', 'finalState'] as const)('sums of %s that round the same way', (quantity) => {
    const keyDim = 4096;
    const random = randomValues(testSeed);
    for (let run = 0; run < scaled(5); run++) {
      const [x, s] = [random.uniform() / 64, random.uniform()];
      // What a delta lacks is written to the first row alone by a key that is large there.
      const [query, key, first] = quantity === 'out' ? [x, 0, 0] : [0, x, 1];
      const problem: RecurrentProblem = {
        family: 'delta',
        q: tensor('fp64', [1, 1, 1, keyDim], () => query),
        k: tensor('fp64', [1, 1, 1, keyDim], (i) => (i === 0 ? first : key)),
        v: tensor('fp64', [1, 1, 1, 1], () => 0),
        beta: tensor('fp64', [1, 1, 1], () => 1),
        initialState: tensor('fp64', [1, 1, keyDim, 1], (i) => (i === 0 ? 0 : s)),
      };
      const share = shareOfRadius(problem, quantity);
      expect(share).toBeLessThanOrEqual(1);
      sums[quantity] = Math.max(sums[quantity], share);
    }
  });

  it('the normalisation of one element', () => {
    const random = randomValues(testSeed);
    for (let run = 0; run < scaled(500); run++) {
      const one = (value: number) => tensor('fp64', [1, 1, 1, 1], () => value);
      const share = shareOfRadius(
        {
          family: 'linear',
          q: one(0),
          k: one(random.normal()),
          v: one(random.normal()),
          normalisation: { epsilon: 0.3 },
        },
        'finalState',
      );
      expect(share).toBeLessThanOrEqual(1);
      normalised = Math.max(normalised, share);
    }
  });
});

it('moves the radius past a token as an error moves: along the key, and across it', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const random = randomValues(seed);
      const column = () => [random.normal(), random.normal(), random.normal()];
      const [key, error, beta] = [column(), column(), 3 * random.normal()];
      const norm = (x: readonly number[]) => Math.hypot(...x);
      const dot = (x: readonly number[], y: readonly number[]) =>
        x.reduce((sum, xi, i) => sum + xi * y[i], 0);
      for (const moved of [error, key]) {
        const errors = {
          radius: Float64Array.of(norm(moved)),
          norm: Float64Array.of(0),
        };
        const decay = { largest: 0.75, error: 0 };
        const token = {
          decay,
          keyNorm: norm(key),
          strength: beta,
          strengthError: 0,
          valueError: 0,
        };
        const zeros = new Float64Array(1);
        advanceErrors(errors, token, roundingsOfProblem(4, false), zeros, zeros);
        const decayed = moved.map((x) => 0.75 * x);
        const after = decayed.map((x, i) => x - beta * key[i] * dot(key, decayed));
        expect(norm(after)).toBeLessThanOrEqual(errors.radius[0] * (1 + 2 ** -45) + 2 ** -490);
        // No larger than the longest that such an error may become.
        const factor = Math.max(1, Math.abs(1 - beta * dot(key, key)));
        expect(errors.radius[0]).toBeLessThanOrEqual(
          0.75 * norm(moved) * factor * (1 + 2 ** -30) + 2 ** -490,
        );
      }
    }),
    parameters,
  );
});
