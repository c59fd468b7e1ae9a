import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mamba2Recurrence, recurrentOracle } from '../../../../oracles/index.js';
import {
  gateFactor,
  softplus,
  softplusError,
} from '../../../../oracles/recurrent/mamba2/softplus.js';
import type { FormatName } from '../../../../src/formats/index.js';
import type { RecurrentProblem } from '../../../../src/problem/index.js';
import { scaled, testSeed } from '../../../setup/effort.js';
import { mamba2Problem, type DrawnMamba2 } from '../../../setup/mamba2-problems.js';
import { tensor } from '../../../setup/problems.js';
import { loadMpfr } from '../../mpfr.js';
import { referenceMamba2 } from './reference-mamba2.js';

const mpfr = await loadMpfr();

const bits = 1200;

/** The largest share of its radius that an output or a state errs by; more than 1 is a failure. */
function usedRadius(problem: RecurrentProblem): number {
  const { out, finalState } = recurrentOracle(problem);
  return mpfr.withPrecision(bits, (arena) => {
    const exact = referenceMamba2(problem, arena);
    const used = ({ values, radius }: typeof finalState, of: (typeof exact)['out']) => {
      expect(values.length).toBe(of.length);
      return of.reduce((most, one, i) => {
        const error = arena.distance(one, values[i]);
        return Math.max(most, error === 0 ? 0 : error / radius[i]);
      }, 0);
    };
    return Math.max(used(out, exact.out), used(finalState, exact.finalState));
  });
}

const drawn: fc.Arbitrary<DrawnMamba2> = fc.record({
  seed: fc.nat(2 ** 31),
  lengths: fc.array(fc.nat(6), { minLength: 1, maxLength: 3 }),
  groups: fc.integer({ min: 1, max: 2 }),
  groupSize: fc.integer({ min: 1, max: 3 }),
  stateDim: fc.integer({ min: 1, max: 6 }),
  headDim: fc.integer({ min: 1, max: 3 }),
  format: fc.constantFrom<FormatName>('bf16', 'fp32', 'fp64'),
  has: fc.record({
    d: fc.boolean(),
    z: fc.boolean(),
    dtBias: fc.boolean(),
    softplus: fc.boolean(),
    state: fc.boolean(),
  }),
  hasWideD: fc.boolean(),
  dtLimit: fc.constantFrom<[number, number]>([0, Infinity], [0.001, 0.1], [-1, 1]),
});

describe("Mamba-2's oracle", () => {
  it('is within its radii', { timeout: 600_000 }, () => {
    fc.assert(
      fc.property(drawn, (one) => {
        expect(usedRadius(mamba2Problem(one))).toBeLessThanOrEqual(1);
      }),
      { seed: testSeed, numRuns: scaled(60) },
    );
  });

  it('has radii far below roundings of fp32', () => {
    const problem = mamba2Problem({ seed: 3, lengths: [200], stateDim: 16, headDim: 8 });
    const { out } = recurrentOracle(problem);
    out.values.forEach((_, i) => expect(out.radius[i]).toBeLessThan(2 ** -40 * out.magnitude[i]));
  });

  it('counts what Δ errs by: without that the radius would be too small', () => {
    const problem = mamba2Problem({
      seed: 5,
      lengths: [40],
      format: 'fp64',
      has: { d: false, z: false, state: false },
    });
    const wide = (one: RecurrentProblem): RecurrentProblem => ({
      ...one,
      // Steps of e^-600 err by some hundred u, which nothing else covers; x makes values of some size of them.
      v: tensor('fp64', one.v.shape, (i) => 2 ** 860 * (1 + i / 64)),
      mamba2: {
        ...one.mamba2!,
        dt: tensor('fp64', one.mamba2!.dt.shape, (i) => -600 - (i % 7)),
        dtBias: tensor('fp64', [2], () => -0.1),
      },
    });
    const { plain } = mamba2Recurrence(wide(problem), wide(problem).mamba2!);
    const { stepErrors, ...bare } = plain;
    expect(Math.min(...stepErrors!)).toBeGreaterThan(500 * 2 ** -53);
    const without = recurrentOracle(bare).out;
    const used = mpfr.withPrecision(bits, (arena) =>
      referenceMamba2(wide(problem), arena).out.reduce(
        (most, exact, i) =>
          Math.max(most, arena.distance(exact, without.values[i]) / without.radius[i]),
        0,
      ),
    );
    expect(used).toBeGreaterThan(1);
    expect(usedRadius(wide(problem))).toBeLessThanOrEqual(1);
  });

  it('refuses numbers that are not finite, and softpluses of numbers that are too small', () => {
    const problem = mamba2Problem({ seed: 1 });
    const withDt = (x: number) => ({
      ...problem,
      mamba2: { ...problem.mamba2!, dt: tensor('fp32', [1, 7, 2], () => x) },
    });
    expect(() => recurrentOracle(withDt(NaN))).toThrow(/an element of dt is not finite/);
    expect(() => recurrentOracle(withDt(-800))).toThrow(/give numbers of at least −690/);
  });
});

it.each([-690, -300.5, -37.25, -1.1, -(2 ** -30), 0, 2 ** -40, 0.3, 1.7, 19.999, 20])(
  'log(1 + e^x) of %d is within its error',
  (x) => {
    mpfr.withPrecision(bits, (arena) => {
      const exact = arena.log(arena.add(arena.of(1), arena.exp(arena.of(x))));
      const error = arena.distance(exact, softplus(x)) / arena.toNumber(exact);
      expect(error).toBeLessThanOrEqual(softplusError(x));
    });
  },
);

it.each([-690, -40.5, -3, -(2 ** -20), 0, 0.7, 5, 88, 700])(
  'z σ(z) of %d is within its radius',
  (z) => {
    mpfr.withPrecision(bits, (arena) => {
      const power = arena.exp(arena.of(-z));
      const exact = arena.divide(arena.of(z), arena.add(arena.of(1), power));
      const { value, radius } = gateFactor(z);
      expect(arena.distance(exact, value)).toBeLessThanOrEqual(radius);
    });
  },
);
