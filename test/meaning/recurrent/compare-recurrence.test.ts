import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeTensor } from '../../../src/formats/index.js';
import {
  compareRecurrence,
  constantsText,
  type RecurrentComparison,
  type RecurrentRealOf,
} from '../../../src/meaning/recurrent/index.js';
import { possibleConstants } from '../../../src/meaning/recurrent/constants.js';
import { runColumns } from '../../../src/meaning/recurrent/exact-columns.js';
import { recurrentShape, type RecurrentProblem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { loadMpfr, type Arena, type Real } from '../../oracles/mpfr.js';
import {
  drawnRecurrence,
  families,
  recurrence,
  tame,
  wild,
} from '../../oracles/recurrent/drawn-recurrences.js';
import { referenceRecurrence } from '../../oracles/recurrent/reference-recurrence.js';

const mpfr = await loadMpfr();
const limit = 1e-25;
const parameters = { seed: testSeed, numRuns: scaled(20) };

/** fp32(log2 e) · ln 2. */
function roundedGateFactor(arena: Arena): Real {
  return arena.multiply(arena.of(Math.fround(Math.LOG2E)), arena.log(arena.of(2)));
}

/** The recurrence in MPFR, its values as double-doubles. */
function realValues(
  problem: RecurrentProblem,
  gateFactorOf: (arena: Arena) => Real = (arena) => arena.of(1),
): RecurrentRealOf {
  const { tokens, valueHeads, keyDim, valueDim } = recurrentShape(problem);
  return mpfr.withPrecision(1200, (arena) => {
    const { out, finalState } = referenceRecurrence(problem, arena, gateFactorOf(arena));
    const doubled = (x: Real) => {
      const high = arena.toNumber(x);
      return { high, low: arena.toNumber(arena.subtract(x, arena.of(high))) };
    };
    const values = { out: out.map(doubled), final_state: finalState.map(doubled) };
    return (output, { batch, head, row }, column) => {
      const at =
        output === 'out'
          ? (batch * tokens + row) * valueHeads + head
          : (batch * valueHeads + head) * keyDim + row;
      return values[output][at * valueDim + column];
    };
  });
}

function compare(problem: RecurrentProblem, decisive: RecurrentRealOf): RecurrentComparison {
  return compareRecurrence(problem, ['out', 'final_state'], { decisive, others: null });
}

function worstOf({ outputs }: RecurrentComparison): number {
  return Math.max(...outputs.map(({ worst }) => worst?.distance ?? 0));
}

describe.each(families)('the algebra of %s', (family) => {
  const drawn = drawnRecurrence(family);

  it('has the values of the recurrence in MPFR', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(drawn, fc.constantFrom(tame, wild), (one, range) => {
        const problem = recurrence(one, range);
        const found = compare(problem, realValues(problem));
        expect(worstOf(found)).toBeLessThan(limit);
        expect(found.constants.logarithm?.name ?? 'log2 e').toBe('log2 e');
        for (const { worstIdeal, withoutMeaning } of found.outputs) {
          expect(worstIdeal?.distance ?? 0).toBeLessThan(limit);
          expect(withoutMeaning).toBe(0);
        }
      }),
      parameters,
    );
  });

  it('knows log2 e rounded to fp32', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(drawn, (one) => {
        const problem = recurrence(one, tame);
        const found = compare(problem, realValues(problem, roundedGateFactor));
        expect(worstOf(found)).toBeLessThan(limit);
        const { logarithm } = found.constants;
        const ideal = found.outputs.map(({ worstIdeal }) => worstIdeal?.distance ?? 0);
        if (logarithm === null || Math.max(...ideal) < limit) return;
        expect(logarithm.name).toBe('fp32(log2 e)');
        expect(found.gateError).toBeCloseTo(-1.33e-8, 9);
        expect(constantsText(found.constants, 'scale')).toContain('2^(fp32(log2 e)·g)');
      }),
      parameters,
    );
  });

  it('knows a scale rounded to fp32, and no other', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(drawn, fc.constantFrom(0.3, 0.7, -1.1), (one, scale) => {
        const problem = { ...recurrence(one, tame), scale };
        const nameOf = (other: number) => {
          const found = compare(problem, realValues({ ...problem, scale: other }));
          expect(worstOf(found)).toBeLessThan(limit);
          const [out] = found.outputs;
          const isTold = (out.worstIdeal?.distance ?? 0) > limit;
          return isTold || other === scale ? found.scale?.name : undefined;
        };
        expect(nameOf(scale)).toBe('scale');
        expect(nameOf(Math.fround(scale)) ?? 'fp32(scale)').toBe('fp32(scale)');
        expect(nameOf(scale * 1.01) ?? null).toBeNull();
      }),
      parameters,
    );
  });

  it('sees one value that is off by 1e-10 of itself', { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(drawn, fc.nat(2 ** 20), (one, chosen) => {
        const problem = recurrence({ ...one, format: 'fp64', isPacked: true }, tame);
        const { valueDim } = recurrentShape(problem);
        const values = decodeTensor(problem.v);
        const at = chosen % Math.max(1, values.length);
        const strength = problem.beta && decodeTensor(problem.beta)[Math.floor(at / valueDim)];
        fc.pre(values.length > 0 && strength !== 0);
        const v = tensor('fp64', problem.v.shape, (i) => values[i] * (i === at ? 1 + 1e-10 : 1));
        expect(worstOf(compare(problem, realValues({ ...problem, v })))).toBeGreaterThan(limit);
      }),
      parameters,
    );
  });
});

describe('the yardstick of a column', () => {
  it('is at least its norm', () => {
    fc.assert(
      fc.property(drawnRecurrence(), fc.constantFrom(tame, wild), (one, range) => {
        const problem = recurrence(one, range);
        const shape = recurrentShape(problem);
        const [constants] = possibleConstants(problem);
        shape.sequences.forEach((_, sequence) => {
          const place = { sequence, head: 0, columns: [0] };
          const [{ elements, size }] = runColumns(
            problem,
            shape,
            place,
            constants,
            () => undefined,
          );
          expect(size).toBeGreaterThanOrEqual(Math.hypot(...elements.map(({ high }) => high)));
        });
      }),
      parameters,
    );
  });

  // The second token erases the first, and what is left of it, by rounding, is much of the third.
  it('remembers what was erased', () => {
    const ofTokens = (...numbers: readonly number[]) =>
      tensor('fp64', [1, 3, 1], (i) => numbers[i]);
    const keys = tensor('fp64', [1, 3, 1, 3], (i) => (i % 3) + 1);
    const value = tensor('fp64', [1, 3, 1, 1], (i) => [1, 1e-15, 0][i]);
    const problem: RecurrentProblem = {
      family: 'gated-delta',
      q: keys,
      k: keys,
      v: value,
      g: ofTokens(-0.1, -0.2, -0.3),
      beta: ofTokens(1, 1, 1e-30),
      normalisation: { epsilon: 2 ** -900 },
    };
    expect(worstOf(compare(problem, realValues(problem)))).toBeLessThan(limit);
  });
});

// Each token makes what errors have along the key 141 times as large; the state is across the key, and stays as it is.
it('knows where errors grow and the state does not', () => {
  const keys = tensor('fp64', [1, 16, 1, 3], (i) => (i % 3) + 1);
  const problem: RecurrentProblem = {
    family: 'gated-delta',
    q: keys,
    k: keys,
    v: tensor('fp64', [1, 16, 1, 1], () => 0),
    g: tensor('fp64', [1, 16, 1], () => -0.1),
    beta: tensor('fp64', [1, 16, 1], () => -10),
    initialState: tensor('fp64', [1, 1, 3, 1], (i) => [3, 0, -1][i]),
  };
  expect(worstOf(compare(problem, realValues(problem)))).toBeLessThan(limit);
});

describe('gates', () => {
  it('that are all 0 tell no log2 e', () => {
    const problem: RecurrentProblem = {
      family: 'simple-gla',
      q: tensor('fp32', [1, 3, 1, 2], (i) => i + 1),
      k: tensor('fp32', [1, 3, 1, 2], (i) => i - 2),
      v: tensor('fp32', [1, 3, 1, 2], (i) => i * i - 3),
      g: tensor('fp32', [1, 3, 1], () => 0),
    };
    expect(compare(problem, realValues(problem)).isGateTold).toBe(false);
    const g = tensor('fp32', [1, 3, 1], () => -0.25);
    expect(compare({ ...problem, g }, realValues({ ...problem, g })).isGateTold).toBe(true);
  });
});
