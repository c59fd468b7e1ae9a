import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recurrentOracle } from '../../../oracles/index.js';
import type { RecurrentProblem } from '../../../src/problem/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { loadMpfr } from '../mpfr.js';
import {
  drawnRecurrence,
  families,
  recurrence,
  tame,
  wild,
  type DrawnRecurrence,
} from './drawn-recurrences.js';
import { referenceRecurrence } from './reference-recurrence.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();

/** No radius but 0 is below 2^-1000, and numbers stay below 2^100: this is exact beside them. */
const enough = 1200;

function assertWithinRadii(problem: RecurrentProblem, bits = enough): void {
  const found = recurrentOracle(problem);
  mpfr.withPrecision(bits, (arena) => {
    const reference = referenceRecurrence(problem, arena);
    for (const name of ['out', 'finalState'] as const) {
      const { values, radius } = found[name];
      expect(values.length).toBe(reference[name].length);
      reference[name].forEach((exact, i) => {
        if (!(arena.distance(exact, values[i]) <= radius[i]))
          expect.fail(
            `${name}[${i}] = ${values[i]} ± ${radius[i]}, exact ${arena.toNumber(exact)}`,
          );
      });
    }
  });
}

const parameters = { seed: testSeed, numRuns: scaled(25) };

describe.each(families)('%s', (family) => {
  it('is within its radii', { timeout: 600_000 }, () => {
    fc.assert(
      fc.property(drawnRecurrence(family), fc.constantFrom(tame, wild), (drawn, range) =>
        assertWithinRadii(recurrence(drawn, range)),
      ),
      parameters,
    );
  });

  // Products that underflow and sums that overflow; numbers reach 2^6000 in exact arithmetic.
  inTurn('is within its radii at the ends of the range of fp64', { timeout: 600_000 }, () => {
    const exponent = fc.integer({ min: -600, max: 200 });
    fc.assert(
      fc.property(drawnRecurrence(family), exponent, exponent, exponent, (drawn, a, b, c) => {
        const problem = recurrence({ ...drawn, format: 'fp64' }, wild);
        const { q, k, v, initialState } = problem;
        const times = (one: Tensor, power: number): Tensor => {
          const data = decodeTensor(one).map((x) => x * 2 ** power);
          return { format: 'fp64', shape: one.shape, data };
        };
        assertWithinRadii(
          {
            ...problem,
            q: times(q, a),
            k: times(k, b),
            v: times(v, c),
            ...(initialState && { initialState: times(initialState, a) }),
          },
          8000,
        );
      }),
      { ...parameters, numRuns: scaled(10) },
    );
  });

  // No state of a tame problem is larger than all that was written, at most 2|v| a token, and the initial state.
  it('has small radii where models work', () => {
    fc.assert(
      fc.property(drawnRecurrence(family), (drawn) => {
        const problem = recurrence(drawn, tame);
        const found = recurrentOracle(problem);
        const sumOf = (tensor: Tensor | undefined) =>
          tensor ? decodeTensor(tensor).reduce((sum, x) => sum + Math.abs(x), 0) : 0;
        const size = 2 * sumOf(problem.v) + sumOf(problem.initialState);
        const largest = (radius: Float64Array) => radius.reduce((a, b) => Math.max(a, b), 0);
        // Queries are shorter than √3, and the scale is at most 1.
        expect(largest(found.out.radius)).toBeLessThanOrEqual(2 ** -43 * size + 2 ** -400);
        expect(largest(found.finalState.radius)).toBeLessThanOrEqual(2 ** -43 * size + 2 ** -400);
      }),
      parameters,
    );
  });
});

/** One head, keys of length 1, no initial state. */
const frame: DrawnRecurrence = {
  family: 'delta',
  lengths: [3000],
  isPacked: false,
  keyHeads: 1,
  groupSize: 1,
  keyDim: 7,
  valueDim: 2,
  format: 'fp32',
  isNormalised: true,
  hasState: false,
  seed: testSeed,
};

describe('a radius', () => {
  const long = (strength: number) => recurrence(frame, { ...tame, strength: () => strength });

  it.each([0.5, 1, 2])('grows no faster than tokens under a write strength of %d', (strength) => {
    const { radius, values } = recurrentOracle(long(strength)).finalState;
    const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    // Some 30 roundings a token, of columns that are never 2^6 times as large as the last one's largest element.
    radius.forEach((r) => expect(r).toBeLessThan(30 * 3000 * 2 ** (6 - 53) * largest));
  });

  it('says so where the state grows without end', () => {
    const { radius } = recurrentOracle(long(300)).finalState;
    expect(radius.every((r) => r === Infinity)).toBe(true);
  });

  it('is finite again once a gate of −∞ forgot a state that overflowed', () => {
    const forgetting = 398;
    const problem = recurrence(
      { ...frame, family: 'gated-delta', lengths: [forgetting + 2] },
      { ...tame, strength: () => 300, gate: () => 0 },
    );
    const { radius: before } = recurrentOracle(problem).out;
    expect(before[2 * forgetting]).toBe(Infinity);
    problem.g?.data.fill(-Infinity, forgetting, forgetting + 1);
    const { radius } = recurrentOracle(problem).out;
    expect(radius[2 * (forgetting - 1)]).toBe(Infinity);
    expect(radius[2 * forgetting]).toBeLessThan(2 ** -35);
  });
});
