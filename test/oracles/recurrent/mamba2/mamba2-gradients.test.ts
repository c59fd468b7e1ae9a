import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  recurrentGradients,
  type RecurrentGradients,
  type ScaledReferenceQuantity,
} from '../../../../oracles/index.js';
import type { FormatName } from '../../../../src/formats/index.js';
import type { RecurrentGradientInputs, RecurrentProblem } from '../../../../src/problem/index.js';
import { scaled, testSeed } from '../../../setup/effort.js';
import { mamba2Problem, type DrawnMamba2 } from '../../../setup/mamba2-problems.js';
import { loadMpfr } from '../../mpfr.js';
import { drawnInputs } from '../drawn-recurrences.js';
import { differentiate, recorded, type Node } from '../reference-gradients.js';
import { referenceMamba2 } from './reference-mamba2.js';

const mpfr = await loadMpfr();

/** The largest share of its radius that each gradient errs by. */
function usedRadii(
  problem: RecurrentProblem,
  given: RecurrentGradientInputs,
): Readonly<Record<string, number>> {
  const { quantities } = recurrentGradients(problem, given);
  return mpfr.withPrecision(1200, (arena) => {
    const nodes: Node[] = [];
    const { inputs, ...results } = referenceMamba2(problem, recorded(arena, nodes));
    differentiate({ nodes, ...results }, given, arena);
    const names = Object.keys(inputs).filter((name) => inputs[name] !== undefined);
    expect(Object.keys(quantities).sort()).toEqual(names.sort());
    return Object.fromEntries(
      names.map((name) => {
        const { values, radius } = quantities[name as keyof RecurrentGradients]!;
        expect(values.length).toBe(inputs[name]!.length);
        const used = inputs[name]!.map(({ gradient }, i) => {
          const error = arena.distance(gradient, values[i]);
          return error === 0 ? 0 : error / radius[i];
        });
        return [name, Math.max(0, ...used)];
      }),
    );
  });
}

const drawn: fc.Arbitrary<DrawnMamba2> = fc.record({
  seed: fc.nat(2 ** 31),
  lengths: fc.array(fc.nat(5), { minLength: 1, maxLength: 3 }),
  groups: fc.integer({ min: 1, max: 2 }),
  groupSize: fc.integer({ min: 1, max: 3 }),
  stateDim: fc.integer({ min: 1, max: 5 }),
  headDim: fc.integer({ min: 1, max: 3 }),
  format: fc.constantFrom<FormatName>('bf16', 'fp32', 'fp64'),
  has: fc.record({
    d: fc.boolean(),
    z: fc.constant(false),
    dtBias: fc.boolean(),
    softplus: fc.boolean(),
    state: fc.boolean(),
  }),
  hasWideD: fc.boolean(),
  dtLimit: fc.constantFrom<[number, number]>([0, Infinity], [0.01, 0.1]),
});

describe("Mamba-2's gradients", () => {
  it('are within their radii of the derivatives of the definition', { timeout: 600_000 }, () => {
    fc.assert(
      fc.property(drawn, (one) => {
        const problem = mamba2Problem(one);
        const used = usedRadii(problem, drawnInputs(problem, one.seed));
        for (const [name, share] of Object.entries(used))
          if (!(share <= 1)) expect.fail(`${name}: ${share} of its radius`);
      }),
      { seed: testSeed, numRuns: scaled(40) },
    );
  });

  it('have radii far below roundings of fp32', () => {
    const has = { z: false };
    const problem = mamba2Problem({ seed: 3, lengths: [120], stateDim: 8, headDim: 8, has });
    const { quantities } = recurrentGradients(problem, drawnInputs(problem, 1));
    for (const { radius, magnitude } of Object.values<ScaledReferenceQuantity>({ ...quantities }))
      radius.forEach((one: number, i: number) =>
        expect(one).toBeLessThan(2 ** -36 * magnitude[i] + 2 ** -900),
      );
  });

  it('are refused beside a gate', () => {
    const problem = mamba2Problem({ seed: 3 });
    expect(() => recurrentGradients(problem, drawnInputs(problem, 1))).toThrow(
      'there are no exact gradients beside a gate z; leave z out',
    );
  });
});
