import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gateRecurrence, recurrentOracle } from '../../../oracles/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import { withHeadGates, type RecurrentProblem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { madeGateProblem, type DrawnGates } from '../../setup/made-gates.js';
import { tensor } from '../../setup/problems.js';
import { loadMpfr } from '../mpfr.js';
import { drawnRecurrence, recurrence, tame, type DrawnRecurrence } from './drawn-recurrences.js';
import { referenceGates } from './reference-gates.js';
import { referenceRecurrence } from './reference-recurrence.js';

const mpfr = await loadMpfr();

const bits = 1200;

/** The largest share of its radius that an output or a state errs by; more than 1 is a failure. */
function usedRadius(problem: RecurrentProblem, given = problem): number {
  const found = recurrentOracle(given);
  return mpfr.withPrecision(bits, (arena) => {
    const made = referenceGates(problem, arena);
    const exact = referenceRecurrence(problem, arena, undefined, made);
    const shares = (['out', 'finalState'] as const).flatMap((name) => {
      const { values, radius } = found[name];
      expect(values.length).toBe(exact[name].length);
      return exact[name].map((one, i) => {
        const error = arena.distance(one, values[i]);
        return error === 0 ? 0 : error / radius[i];
      });
    });
    return Math.max(0, ...shares);
  });
}

/** Of one key head, in one sequence. */
const oneHead: DrawnRecurrence = {
  family: 'linear',
  lengths: [4],
  isPacked: false,
  keyHeads: 1,
  groupSize: 1,
  keyDim: 4,
  valueDim: 3,
  format: 'bf16',
  isNormalised: false,
  hasState: true,
  seed: 8,
};

const drawn: fc.Arbitrary<DrawnGates> = fc.record({
  seed: fc.nat(2 ** 31),
  family: fc.constantFrom('simple-gla', 'gla', 'gated-delta', 'kda'),
  lengths: fc.array(fc.nat(6), { minLength: 1, maxLength: 3 }),
  keyHeads: fc.integer({ min: 1, max: 2 }),
  groupSize: fc.integer({ min: 1, max: 2 }),
  keyDim: fc.integer({ min: 1, max: 6 }),
  valueDim: fc.integer({ min: 1, max: 3 }),
  format: fc.constantFrom<FormatName>('bf16', 'fp32', 'fp64'),
  bias: fc.constantFrom(-30, -5, 0, 2, 30),
  hasBias: fc.boolean(),
});

describe('the oracle of gates and write strengths that kernels make', () => {
  it('is within its radii', { timeout: 600_000 }, () => {
    fc.assert(
      fc.property(drawn, (one) => {
        expect(usedRadius(madeGateProblem(one))).toBeLessThanOrEqual(1);
      }),
      { seed: testSeed, numRuns: scaled(40) },
    );
  });

  it('counts what they err by: without that the radius would be too small', () => {
    const { initialState, ...begun } = madeGateProblem({
      seed: 5,
      family: 'gated-delta',
      lengths: [3],
      format: 'fp64',
    });
    const numbers = (of: (i: number) => number) => tensor('fp64', [1, 3, 2], of);
    // e^600 times e^-600 errs by a thousand u.
    const gates: RecurrentProblem = {
      ...begun,
      initialState: tensor('fp32', initialState!.shape, (i) => 1000 + i),
      gateInputs: {
        aLog: tensor('fp64', [2], (i) => 600 + i),
        a: numbers((i) => -600 - (i % 3) / 7),
        dtBias: tensor('fp64', [2], () => -0.1),
      },
    };
    // So does a β of e^-600, beside values of some size.
    const strengths: RecurrentProblem = {
      ...begun,
      v: tensor('fp64', begun.v.shape, (i) => 2 ** 870 * (1 + i / 64)),
      strengthLogits: numbers((i) => -600 - (i % 5) / 7),
    };
    for (const [problem, name] of [
      [gates, 'gateErrors'],
      [strengths, 'strengthErrors'],
    ] as const) {
      const plain = gateRecurrence(problem);
      expect(Math.min(...plain[name]!)).toBeGreaterThan(500 * 2 ** -53);
      expect(usedRadius(problem)).toBeLessThanOrEqual(1);
      expect(usedRadius(problem, { ...plain, [name]: undefined })).toBeGreaterThan(1);
    }
  });

  it('takes gates of base 2', { timeout: 300_000 }, () => {
    const ofBase = fc.constantFrom('simple-gla', 'gla', 'gated-delta', 'kda');
    fc.assert(
      fc.property(drawnRecurrence(), ofBase, (one, family) => {
        const problem = recurrence({ ...one, family }, tame);
        const { out, finalState } = recurrentOracle({ ...problem, gateBase: 2 });
        mpfr.withPrecision(bits, (arena) => {
          const exact = referenceRecurrence(problem, arena, arena.log(arena.of(2)));
          for (const [found, reals] of [
            [out, exact.out],
            [finalState, exact.finalState],
          ] as const)
            reals.forEach((real, i) => {
              expect(arena.distance(real, found.values[i])).toBeLessThanOrEqual(found.radius[i]);
            });
        });
      }),
      { seed: testSeed, numRuns: scaled(20) },
    );
  });

  it('takes gates of heads, which retention has for its own', () => {
    const problem = recurrence(
      { ...oneHead, family: 'retention', lengths: [5], groupSize: 3 },
      tame,
    );
    const gates = tensor('fp32', [3], (i) => -0.25 * (i + 1));
    const withGates = withHeadGates(problem, gates);
    expect(withGates.family).toBe('simple-gla');
    const spread = tensor('fp64', [1, 5, 3], (i) => -0.25 * ((i % 3) + 1));
    expect(recurrentOracle(withGates)).toEqual(
      recurrentOracle({ ...problem, family: 'simple-gla', g: spread }),
    );
    // Retention's own decays are those of its heads.
    const own = tensor('fp64', [3], (i) => Math.log1p(-(2 ** (-5 - i))));
    const { out } = recurrentOracle(withHeadGates(problem, own));
    recurrentOracle(problem).out.values.forEach((x, i) => expect(out.values[i]).toBeCloseTo(x, 12));
    expect(() =>
      withHeadGates(
        problem,
        tensor('fp32', [2], () => -1),
      ),
    ).toThrow('g_gamma has shape [2]; give it [3]');
    expect(() => withHeadGates({ ...problem, family: 'gla' }, gates)).toThrow('gla has no g_gamma');
    expect(() => withHeadGates(withGates, gates)).toThrow('there are g_gamma and g; give one');
    expect(() => recurrentOracle({ ...problem, gateBase: 2 })).toThrow(
      'the gates have the base 2, but there is no g',
    );
  });

  it('refuses what it cannot compute', () => {
    const problem = madeGateProblem({ seed: 1, family: 'gated-delta', lengths: [2] });
    const { gateInputs, strengthLogits, ...rest } = problem;
    if (!gateInputs || !strengthLogits) throw new Error('the problem has both');
    const withGates = (change: object) => () =>
      recurrentOracle({ ...problem, gateInputs: { ...gateInputs, ...change } });
    expect(withGates({ aLog: tensor('fp32', [2], () => 900) })).toThrow(/A_log is 900; give/);
    expect(withGates({ a: tensor('fp32', [1, 2, 2], () => -900) })).toThrow(
      /a \+ dt_bias is -\d.*give numbers of at least −690/,
    );
    expect(withGates({ a: tensor('fp32', [1, 2, 2], () => NaN) })).toThrow(
      'an element of a is not',
    );
    expect(withGates({ dtBias: tensor('fp32', [3], () => 0) })).toThrow('dt_bias has shape [3]');
    const b = tensor('fp32', [1, 2, 2], () => -800);
    expect(() => recurrentOracle({ ...problem, strengthLogits: b })).toThrow(/of b is -800; give/);
    const g = tensor('fp32', [1, 2, 2], () => -1);
    expect(() => recurrentOracle({ ...problem, g })).toThrow('there are g and A_log');
    expect(() => recurrentOracle({ ...rest, g, beta: g, strengthLogits })).toThrow(
      'there are beta and b',
    );
    expect(() => recurrentOracle({ ...rest, family: 'delta', gateInputs })).toThrow(
      'delta has no A_log',
    );
    expect(() => recurrentOracle(rest)).toThrow('gated-delta needs g of shape [1, 2, 2]; give it');
  });
});
