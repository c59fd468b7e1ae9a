import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { runRecurrence, unrounded } from '../../../kernels/recurrent/index.js';
import { recurrentOracle } from '../../../oracles/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { drawnRecurrence, recurrence, tame } from '../../oracles/recurrent/drawn-recurrences.js';
import { exactChunked, exactRecurrent } from './arithmetics.js';

/** The largest difference, relative to the largest size. */
function difference(one: Float64Array, other: Float64Array): number {
  expect(one.length).toBe(other.length);
  let most = 0;
  let size = 1e-300;
  one.forEach((x, i) => {
    expect(Number.isFinite(x)).toBe(true);
    most = Math.max(most, Math.abs(x - other[i]));
    size = Math.max(size, Math.abs(other[i]));
  });
  return most / size;
}

it.each([
  ['token by token', exactRecurrent],
  ['in chunks of 1', exactChunked(1)],
  ['in chunks of 3', exactChunked(3)],
  ['in chunks of 4, inverted by blocks of 2', exactChunked(4, { block: 2 })],
  ['in chunks of 16, inverted by blocks of 3', exactChunked(16, { block: 3 })],
  ['in chunks of 64', exactChunked(64)],
])('computes outputs and final states of the law %s', (_, arithmetic) => {
  const drawn = drawnRecurrence().chain((drawn) =>
    fc.array(fc.nat(40), { minLength: 1, maxLength: 3 }).map((lengths) => ({ ...drawn, lengths })),
  );
  fc.assert(
    fc.property(drawn, (drawn) => {
      const problem = recurrence(drawn, tame);
      const { out, finalState } = recurrentOracle(problem);
      const results = runRecurrence(problem, arithmetic, unrounded);
      expect(difference(results.out as Float64Array, out.values)).toBeLessThan(1e-12);
      expect(difference(results.final_state as Float64Array, finalState.values)).toBeLessThan(
        1e-12,
      );
    }),
    { seed: testSeed, numRuns: scaled(60) },
  );
});
