import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  doubleDouble,
  multiplyDoubleDouble,
  nextUpFloat64,
  type DoubleDouble,
} from '../../../src/arith/index.js';
import { nextUp, formats } from '../../../src/formats/index.js';
import {
  compareAlgebra,
  exactAttentionRow,
  exactFactor,
  inferFactor,
  namedFactors,
  relativeDistance,
  type RealOf,
} from '../../../src/meaning/contracts/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, sumNormalNumbers, tensor, uniformNumbers } from '../../setup/problems.js';
import { everyPlace, realWith } from './real-values.js';

/** Normal numbers, the same for every problem. */
const normalNumbers = () => sumNormalNumbers(uniformNumbers(testSeed));

/** A problem of some rows of 60 keys. */
function problemOf(scale: number, changes: Partial<Problem> = {}): Problem {
  const frame = { heads: 2, kvHeads: 1, queries: 3, keys: 60, dim: 16, vDim: 4 };
  return filledProblem(frame, normalNumbers(), { scale, ...changes });
}

/** The factor that the real values of a kernel with a factor of its own tell. */
function inferred(problem: Problem, factor: DoubleDouble | null) {
  return inferFactor(problem, realWith(problem, factor), everyPlace(problem));
}

// No power of 2, and no fp32 number: its named factors differ from one another.
const scale = 0.1;

describe('the factor of q·k', () => {
  it('is found with its name, whichever it is', () => {
    const problem = problemOf(scale);
    const factors = namedFactors(scale);
    for (const { name, value } of factors) {
      const found = inferred(problem, value);
      expect(found?.name, name).toBe(
        factors.find((other) => relativeDistance(other.value, value) === 0)?.name,
      );
      expect(Math.abs(relativeDistance(found?.value ?? doubleDouble(0), value)), name).toBeLessThan(
        1e-26,
      );
    }
  });

  it('names the constants of fp32 apart from one another', () => {
    const byName = new Map(namedFactors(scale).map(({ name, value }) => [name, value.high]));
    const fp32 = Math.fround;
    const log2e = fp32(Math.LOG2E);
    expect(byName.get('scale·fp32(log2 e)')).toBe(scale * log2e);
    expect(byName.get('fp32(scale·log2 e)')).toBe(fp32(scale * Math.LOG2E));
    expect(byName.get('fp32(scale)·fp32(log2 e)')).toBe(fp32(scale) * log2e);
    expect(byName.get('fp32(fp32(scale)·fp32(log2 e))')).toBe(fp32(fp32(scale) * log2e));
    expect(byName.get('fp32(scale·1.44269504)')).toBe(fp32(scale * 1.44269504));
    expect(new Set(byName.values()).size).toBeGreaterThan(7);
  });

  it('names the neighbours in fp32 of a product that is cut off', () => {
    for (const one of [0.1, 0.3, -0.7, 1 / Math.sqrt(80)]) {
      const exact = exactFactor({ scale: one }).high;
      const cut = namedFactors(one).find(({ name }) => name === 'truncated fp32(scale·log2 e)');
      const size = Math.abs(cut?.value.high ?? NaN);
      expect(size).toBeLessThan(Math.abs(exact));
      expect(nextUp(formats.fp32, size)).toBeGreaterThan(Math.abs(exact));
    }
  });

  it('has another name or none one ulp further, of fp32 as of fp64', () => {
    const problem = problemOf(scale);
    for (const { name, value } of namedFactors(scale)) {
      const [single, double] = [
        nextUp(formats.fp32, Math.fround(value.high)),
        nextUpFloat64(value.high),
      ].map((high) => inferred(problem, doubleDouble(high)));
      expect(single, name).not.toBeNull();
      expect(single?.name, name).not.toBe(name);
      expect(double?.name, name).not.toBe(name);
    }
  });

  it('is found where it is far off: no log2 e, no scale, the scale twice', () => {
    const problem = problemOf(scale);
    const exact = exactFactor(problem);
    for (const ratio of [Math.LN2, Math.LOG2E, 1 / scale, scale, 1.01, 0.99]) {
      const planted = multiplyDoubleDouble(exact, doubleDouble(ratio));
      const found = inferred(problem, planted);
      expect(found?.name, String(ratio)).toBeNull();
      expect(found?.fromExact, String(ratio)).toBeCloseTo(ratio - 1, 12);
    }
  });

  it('is found to full precision beside any feature', () => {
    const planted = fc.double({ min: -(2 ** -20), max: 2 ** -20, noNaN: true });
    const changes: readonly Partial<Problem>[] = [
      {},
      { causal: true },
      { softcap: 5 },
      { bias: tensor('bf16', [60], normalNumbers()) },
      { sink: { logits: tensor('fp32', [2], normalNumbers()), inLse: true } },
    ];
    fc.assert(
      fc.property(planted, fc.constantFrom(...changes), (distance, change) => {
        const problem = problemOf(scale, change);
        const factor = multiplyDoubleDouble(exactFactor(problem), doubleDouble(1 + distance));
        const found = inferred(problem, factor);
        expect(found?.uncertainty).toBeLessThan(1e-25);
        expect(Math.abs(relativeDistance(found?.value ?? doubleDouble(0), factor))).toBeLessThan(
          found?.uncertainty ?? 0,
        );
      }),
      { seed: testSeed, numRuns: scaled(20) },
    );
  });

  it('is told by no row whose keys are alike, and by no scale of 0', () => {
    const alike = filledProblem(
      { queries: 2, keys: 5, dim: 4 },
      { q: normalNumbers(), k: () => 1, v: normalNumbers() },
    );
    expect(inferred(alike, null)).toBeNull();
    expect(inferred(problemOf(0), null)).toBeNull();
    const problem = problemOf(scale);
    expect(inferFactor(problem, () => null, everyPlace(problem))).toBeNull();
  });
});

describe('the comparison of real values', () => {
  const problem = problemOf(scale);
  const places = everyPlace(problem);
  const factor = doubleDouble(Math.fround(scale * Math.LOG2E));
  const real = realWith(problem, factor);

  it('finds no distance from attention with the factor, and that of the factor from the exact one', () => {
    const { factor: found, out, lse } = compareAlgebra(problem, real, places);
    expect(found?.name).toBe('fp32(scale·log2 e)');
    expect(out.compared).toBe(places.length * 4);
    expect(out.withoutMeaning).toBe(0);
    expect(out.worst?.distance).toBeLessThan(1e-27);
    const apart = Math.abs(found?.fromExact ?? 0);
    expect(out.worstIdeal?.distance).toBeGreaterThan(0.01 * apart);
    expect(out.worstIdeal?.distance).toBeLessThan(10 * apart);
    expect(lse).toMatchObject({ base: 'e', unit: 'ln 2', compared: places.length });
    expect(lse.worst?.distance).toBeLessThan(1e-27);
    expect(lse.worstIdeal?.distance).toBeLessThan(10 * apart);
  });

  it('tells the base of the LSE, and fp32 in its place', () => {
    const withUnit =
      (unit: number): RealOf =>
      (output, place, column) =>
        output === 'out'
          ? real(output, place, column)
          : multiplyDoubleDouble(
              exactAttentionRow(problem, place, factor).log2Sum,
              doubleDouble(unit),
            );
    const single = compareAlgebra(problem, withUnit(Math.fround(Math.LN2)), places).lse;
    expect(single).toMatchObject({ base: 'e', unit: 'fp32(ln 2)' });
    expect(single.worst?.distance).toBeLessThan(1e-27);
    const octaves = compareAlgebra(problem, withUnit(1), places).lse;
    expect(octaves).toMatchObject({ base: '2', unit: '1' });
    expect(octaves.worst?.distance).toBeLessThan(1e-27);
  });

  it('says where a value is wrong, and how many have no meaning', () => {
    const wrong: RealOf = (output, place, column) => {
      if (output === 'lse' || (place.row === 1 && column === 2)) return null;
      const value = real(output, place, column);
      const isWrong = place.head === 1 && place.row === 2 && column === 3;
      return isWrong && value !== null ? doubleDouble(value.high * (1 + 2 ** -30)) : value;
    };
    const { out, lse } = compareAlgebra(problem, wrong, places);
    expect(out).toMatchObject({
      compared: places.length * 4 - 2,
      withoutMeaning: 2,
      worst: { place: { batch: 0, head: 1, row: 2 }, column: 3 },
    });
    expect(out.worst?.distance).toBeGreaterThan(2 ** -40);
    expect(lse).toEqual({
      base: null,
      unit: null,
      worst: null,
      worstIdeal: null,
      compared: 0,
      withoutMeaning: places.length,
      telling: 0,
    });
  });

  it('finds the factor beside any row that lacks a key, and that row', () => {
    const lacking = realWith(
      { ...problem, mask: { shape: [60], data: new Uint8Array(60).fill(1, 1) } },
      factor,
    );
    for (const wrong of places) {
      const { factor: found, out } = compareAlgebra(
        problem,
        (output, place, column) => (place === wrong ? lacking : real)(output, place, column),
        places,
      );
      expect(found?.name).toBe('fp32(scale·log2 e)');
      expect(out.worst?.place).toBe(wrong);
      expect(out.worst?.distance).toBeGreaterThan(1e-9);
    }
  });

  it('sees a key that is left out', () => {
    const short: Problem = {
      ...problem,
      mask: { shape: [60], data: Uint8Array.from({ length: 60 }, (_, key) => (key === 7 ? 0 : 1)) },
    };
    const { out } = compareAlgebra(problem, realWith(short, null), places);
    expect(out.worst?.distance).toBeGreaterThan(1e-6);
  });

  it('is at no distance in rows without keys', () => {
    const empty = problemOf(scale, { mask: { shape: [1], data: Uint8Array.of(0) } });
    const { factor: none, out, lse } = compareAlgebra(empty, realWith(empty, null), places);
    expect(none).toBeNull();
    expect(out.worst?.distance).toBe(0);
    expect(lse.worst?.distance).toBe(0);
    expect(lse.base).toBeNull();
  });
});
