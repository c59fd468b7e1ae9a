import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KernelArithmetic, SumArithmetic } from '../../../kernels/index.js';
import { outputRounding, roundingSpread } from '../../../src/audit/bounds/finish.js';
import { createKeyExtents, euclideanNorm } from '../../../src/audit/bounds/key-extents.js';
import {
  commonExponentError,
  exponentError,
  largestExponentError,
  scoreError,
  scoreUnits,
  typicalScoreShare,
} from '../../../src/audit/bounds/scores.js';
import {
  chainLoss,
  fusedSumLoss,
  rescaleFactorError,
  rowSumLoss,
  rowSumOverflows,
  sumUnderflow,
  tileLoss,
} from '../../../src/audit/bounds/sums.js';
import { alike, RowErrors } from '../../../src/audit/bounds/technique-bound.js';
import {
  appliedRounding,
  roundedRowSum,
  weightRounding,
} from '../../../src/audit/bounds/weights.js';
import { hardwareExp2Error } from '../../../src/hardware/index.js';
import { formats, round, ulp } from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
import { filledProblem } from '../../setup/problems.js';

const near = (a: number, b: number) => {
  if (a !== b && !(Math.abs(a - b) <= 1e-11 * Math.abs(b))) expect(a).toBe(b);
};
const fused = {
  kind: 'fused',
  productsPerSum: 16,
  alignedFractionBits: 25,
  resultFractionBits: 23,
} as const;
const sequential = { kind: 'sequential' } as unknown as SumArithmetic;
const anyOrder = {
  kind: 'any-order',
  perProduct: 2 ** -22,
  ofOperands: 2 ** -9,
} as unknown as SumArithmetic;
const u32 = 2 ** -24;

describe('how large keys and values are', () => {
  it('is the largest norm and magnitude of the keys in some ranges, by column too', () => {
    const [keys, qkDim, vDim] = [200, 2, 3];
    const shape = { queries: 1, heads: 2, keys, dim: qkDim, vDim };
    const element = fc.oneof(
      fc.integer({ min: -64, max: 64 }),
      fc.constantFrom(NaN, Infinity, -Infinity, 0),
    );
    const cut = fc.uniqueArray(fc.integer({ min: 0, max: keys }), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(element, { minLength: 40, maxLength: 60 }), cut, (list, cuts) => {
        const fill = (i: number) => (i % 7 === 0 ? list[i % list.length] : i % 23) / 8;
        const problem = filledProblem(shape, { q: () => 1, k: fill, v: (i) => fill(i + 3) });
        const sorted = [...cuts].sort((a, b) => a - b);
        const ranges = Array.from({ length: sorted.length >> 1 }, (_, i) => ({
          begin: sorted[2 * i],
          end: sorted[2 * i + 1],
        }));
        const extents = createKeyExtents(problem, problemShape(problem))(1);
        let [norm, value] = [0, 0];
        const columns = [0, 0, 0];
        for (const { begin, end } of ranges)
          for (let key = begin; key < end; key++) {
            const at = keys + key;
            const [a, b] = [fill(2 * at), fill(2 * at + 1)];
            if (Number.isFinite(a) && Number.isFinite(b)) norm = Math.max(norm, Math.hypot(a, b));
            for (let c = 0; c < vDim; c++) {
              const size = Math.abs(fill(vDim * at + c + 3));
              if (size < Infinity) {
                value = Math.max(value, size);
                columns[c] = Math.max(columns[c], size);
              }
            }
          }
        for (let again = 0; again < 2; again++) {
          expect(extents.value(ranges)).toBe(value);
          expect([...extents.valueByColumn(ranges)]).toEqual(columns);
          expect(extents.keyNorm(ranges)).toBeGreaterThanOrEqual(norm);
          expect(extents.keyNorm(ranges)).toBeLessThanOrEqual(norm * (1 + 2 ** -39));
        }
        expect(extents.value([])).toBe(0);
        expect(extents.value(ranges)).toBe(value);
      }),
      { numRuns: 30 },
    );
  });

  it('is a norm that neither overflows nor underflows', () => {
    for (const scale of [1, 2 ** 600, 2 ** -600, 2 ** -1060]) {
      const values = Float64Array.of(9, 3 * scale, -4 * scale, 7);
      near(euclideanNorm(values, 1, 3) / scale, 5 * (1 + 2 ** -40));
    }
    expect(euclideanNorm(new Float64Array(3), 0, 3)).toBe(0);
    expect(euclideanNorm(Float64Array.of(1.7e308, 1.7e308), 0, 2)).toBe(Infinity);
  });
});

describe('what sums lose', () => {
  it('follows from their products, one fused sum after the other (Theorem 2)', () => {
    near(fusedSumLoss(fused), 17 * 2 ** -25 + 2 ** -23);
    for (const [products, sums] of [
      [1, 1],
      [16, 1],
      [17, 2],
      [64, 4],
    ] as const)
      near(chainLoss(fused, products), sums * fusedSumLoss(fused));
    near(chainLoss(sequential, 12), 24 * u32);
    near(chainLoss(anyOrder, 12), Math.expm1(12 * 2 ** -22));
  });

  it('is what scores may be off by, relative to partial sums and to units', () => {
    const own = (of: SumArithmetic, dim: number) => 1 / (1 - chainLoss(of, dim));
    const ofFused = scoreError(fused, 40);
    expect([ofFused.step, ofFused.units]).toEqual([16, 3]);
    near(ofFused.perPartial, fusedSumLoss(fused) * own(fused, 40));
    near(ofFused.perUnit, 17 * 2 ** -25 * own(fused, 40));
    const one = scoreError(sequential, 40);
    expect([one.step, one.units]).toEqual([1, 40]);
    near(one.perPartial, u32 * own(sequential, 40));
    near(one.perUnit, u32 * own(sequential, 40));
    const any = scoreError(anyOrder, 40);
    expect([any.step, any.units, any.perPartial]).toEqual([0, 1, 0]);
    near(any.perUnit, Math.expm1(40 * 2 ** -22) * (1 + 2 ** -9) + 2 ** -9);
    expect(typicalScoreShare(anyOrder, 16)).toBe(1);
    expect(typicalScoreShare({ ...anyOrder, ofOperands: 0 } as SumArithmetic, 16)).toBe(1 / 4);
    expect(typicalScoreShare({ ...anyOrder, ofOperands: 0 } as SumArithmetic, 0)).toBe(1);
    expect(typicalScoreShare(fused, 16)).toBe(1);
    const values = Float64Array.of(0, -3, 2 ** -9, 1, 4, -0.5, 0, 0, 0, 0);
    const units = (step: number, count: number, least: number | Float64Array) => [
      ...scoreUnits(
        { step, units: count, perPartial: 0, perUnit: 0 },
        { values, rows: 2, dim: 5, measures: null },
        least,
      ),
    ];
    expect(units(2, 3, 2 ** -6)).toEqual([3, 1, 4, 0.5, 0, 0]);
    expect(units(1, 5, 2 ** -6)).toEqual([0, 3, 2 ** -6, 1, 4, 0.5, 0, 0, 0, 0]);
    const leasts = new Float64Array(10).fill(2 ** -8);
    expect(units(1, 5, leasts)[2]).toBe(2 ** -8);
    near(units(0, 1, 2 ** -20)[0], Math.sqrt(9 + 2 ** -18 + 1 + 16) * (1 + 2 ** -40));
  });

  it('is what a tile of keys adds to P·V and to the row sum (Theorems 7 and 8)', () => {
    const of = (values: SumArithmetic) =>
      ({
        values,
        weightFormat: 'bf16',
        underflow: { sums: 2 ** -149 },
        rowSumAdditions: 0,
        rowSumAddition: u32,
        largestSum: 0,
      }) as unknown as KernelArithmetic;
    const loss = tileLoss(of(fused), 40, 2 ** -10);
    near(loss.relative, 3 * fusedSumLoss(fused));
    near(loss.perMass, 3 * fusedSumLoss(fused) * 2 ** -10);
    near(loss.perValue, 3 * fusedSumLoss(fused) * 2 ** -126);
    near(loss.fixed, 3 * 2 ** -149);
    expect(tileLoss(of(sequential), 40, 1)).toEqual({
      relative: 80 * u32,
      perMass: 0,
      perValue: 0,
      fixed: 80 * 2 ** -149,
    });
    expect(tileLoss(of(anyOrder), 40, 1)).toEqual({
      relative: 0,
      perMass: 0,
      perValue: 0,
      fixed: 0,
    });
    expect(sumUnderflow(of(fused), 40)).toBe(2 ** -149);
    expect(sumUnderflow(of(anyOrder), 40)).toBe(41 * 2 ** -149);
    expect(rowSumLoss(of(fused), 40, false)).toBe(40 * u32);
    const blocks = { ...of(fused), rowSumAdditions: 7 };
    expect(rowSumLoss(blocks, 40, true)).toBe(7 * u32);
    expect(rowSumLoss(blocks, 40, false)).toBe(0);
    expect([62, 63].map((reach) => rowSumOverflows(of(fused), 2 ** 63, reach))).toEqual([
      false,
      true,
    ]);
    const large = { ...of(fused), largestSum: 2 ** 200 };
    expect([136, 137].map((reach) => rowSumOverflows(large, 2 ** 63, reach))).toEqual([
      false,
      true,
    ]);
  });

  it('is what a factor of a rescale is off by (Theorem 6)', () => {
    expect(rescaleFactorError(125.5, 0)).toBeLessThan(1e-3);
    expect(rescaleFactorError(125.6, 0)).toBe(1);
    near(rescaleFactorError(0, 1), hardwareExp2Error);
    for (const scaleError of [2 ** -20, -(2 ** -20)]) {
      const off = 8 * (2 * u32 + 2 ** -20);
      const exact = hardwareExp2Error + 2 ** off - 1;
      const found = rescaleFactorError(8, scaleError);
      expect(found).toBeGreaterThanOrEqual(exact);
      expect(found).toBeLessThan(exact * (1 + 2 ** -18));
    }
  });
});

describe('errors of exponents and weights', () => {
  it('are those of Theorem 3', () => {
    const exponent = {
      ofDistance: 2 ** -22,
      ofScore: 2 ** -21,
      ofSoftcap: 2 ** -20,
      absolute: 2 ** -18,
      common: 2 ** -23,
    };
    const of = exponentError(exponent, { first: 3, second: 16, maximum: 5 });
    const per = 2 ** -22 + 2 ** -21 + 2 ** -20;
    const fixed = (2 ** -21 + 2 ** -20) * 5 + 2 ** -18;
    near(of.mean, Math.LN2 * (per * 3 + fixed));
    near(of.rootMeanSquare, Math.LN2 * (per * 4 + fixed));
    expect(commonExponentError(exponent, 0, 0)).toBe(0);
    expect(commonExponentError(exponent, 5, 0)).toBe(5 * 2 ** -23);
    expect(commonExponentError(exponent, 5, -8)).toBe(18 * 2 ** -23);
    expect(commonExponentError(exponent, 0, 8)).toBe(8 * 2 ** -23);
    near(
      largestExponentError(exponent, 5),
      128 * 2 ** -22 + (2 ** -21 + 2 ** -20) * 133 + 2 ** -18,
    );
  });

  it('of a tile of weights count in the mean and in the square mean', () => {
    const errors = new RowErrors();
    errors.addTile(0.25, 2, 3, 4);
    errors.addTile(0.5, 1, 5, 6);
    errors.addTile(0, Infinity, Infinity, NaN);
    expect(errors).toMatchObject({
      mass: 0.75,
      blockMass: 0.75,
      common: 1,
      commonSquared: 1.5,
      commonOfLse: 3.25,
      rescales: 4,
      rescalesSquared: 22,
    });
    near(errors.massAtMost, 0.75 * (1 + 2 ** -12));
    Object.assign(errors, {
      squares: 8,
      exponentialVariance: 4,
      squaresAlike: 16,
      largest: 3,
      rowSum: 2,
    });
    expect(errors.times(0.5)).toMatchObject({
      mass: 0.375,
      commonOfLse: 1.625,
      rescalesSquared: 11,
      rowSum: 1,
      squares: 2,
      exponentialVariance: 1,
      squaresAlike: 4,
      largest: 3,
    });
    expect(alike(0.5, 4)).toEqual({ mean: 2, rootMeanSquare: 1 });
    expect(alike(0.5, -1)).toEqual({ mean: 0, rootMeanSquare: 0 });
    errors.mass = 2;
    expect(errors.massAtMost).toBe(1);
  });

  it('are those of rounding to a format, at its worst (Theorem 5)', () => {
    for (const weightFormat of ['bf16', 'fp16', 'e4m3', 'e5m2', 'e2m1'] as const)
      for (const weightScale of [1, 256]) {
        const arithmetic = {
          weightFormat,
          weightScale,
          overflow: 'result',
          rowSumRounded: true,
        } as unknown as KernelArithmetic;
        const of = weightRounding(arithmetic);
        const held = (x: number) => round(formats[weightFormat], x * weightScale) / weightScale;
        // The worst of the normal numbers lies half an ulp above a power of two, and the least of all below the first.
        const step = ulp(formats[weightFormat], 1);
        expect(of.ulpOfOne).toBe(step);
        near(of.relative, step / 2 / (1 + step / 2));
        const middle = (1 + step / 2) / weightScale;
        expect(Math.abs(held(middle) - middle) / middle).toBeCloseTo(of.relative, 12);
        expect(held(of.least)).toBe(0);
        expect(held(of.least * (1 + 2 ** -20))).toBe(2 * of.least);
        expect(of.maxFinite * weightScale).toBe(formats[weightFormat].maxFinite);
        expect(held(of.smallestNormal * (1 + step))).toBe(of.smallestNormal * (1 + step));
        expect(of.saturates).toBe(weightFormat.startsWith('e'));
        expect(
          weightRounding({ ...arithmetic, overflow: 'fault' } as KernelArithmetic).maxFinite,
        ).toBe(Infinity);
        near(roundedRowSum({ arithmetic, keys: 6, gain: 0.5 }), of.relative + 3 * of.least);
        expect(
          roundedRowSum({ arithmetic: { ...arithmetic, rowSumRounded: false }, keys: 6, gain: 1 }),
        ).toBe(0);
        const dropout = { roundings: 2, factor: 0 };
        const twice = appliedRounding({ ...arithmetic, dropout });
        near(twice.relative, (1 + of.relative) ** 2 - 1);
        expect(twice.least).toBe(2 * of.least);
        expect([of.isOfWeights, twice.isOfWeights]).toEqual([true, false]);
      }
  });
});

describe('the rounding of an output', () => {
  it('is half an ulp of what it may be, or a whole one', () => {
    expect(outputRounding('bf16', 1, 0)).toBe(2 ** -8);
    expect(outputRounding('bf16', -1.9, 0.2)).toBe(2 ** -7);
    expect(outputRounding('bf16', 1, 0, 'truncated')).toBe(2 ** -7);
    expect(outputRounding('fp16', 1e9, 0)).toBe(16);
  });

  it('is known where nothing moves the output across a midpoint, and a variance elsewhere', () => {
    const spread = (
      x: number,
      noise: number,
      systematic: number,
      of?: 'truncated' | 'stochastic',
    ) => roundingSpread('bf16', x, { predicted: 0, noise, systematic }, of);
    // Half an ulp is 2^-8, and the distance a quarter of it.
    const x = 1 + 2 ** -10;
    const room = (3 / 4) * 2 ** -8;
    expect(spread(x, 0, 0.99 * room)).toEqual({ known: 2 ** -10, variance: 0, systematic: 0 });
    expect(spread(x, 0, room).known).toBeNull();
    expect(spread(x, (0.99 * room) / 12, 0).known).toBe(2 ** -10);
    expect(spread(x, (1.01 * room) / 12, 0).known).toBeNull();
    near(spread(x, 0, 2 ** -8).variance, 2 ** -16 / 3);
    near(spread(x, room / 12, 0).variance, (2 ** -10 + room / 12) ** 2);
    // Close to a midpoint little moves it, and it is its distance.
    const beside = 1 + 0.9 * 2 ** -8;
    near(spread(beside, 0.1 * 2 ** -8, 0).variance, 2 ** -16);
    near(spread(1 + 0.2 * 2 ** -8, 0.3 * 2 ** -8, 0).variance, (0.5 * 2 ** -8) ** 2);
    expect(spread(x, 1, 1, 'truncated')).toEqual({ known: null, variance: 0, systematic: 2 ** -7 });
    expect(spread(x, 1, 1, 'stochastic')).toEqual({
      known: null,
      variance: 2 ** -16,
      systematic: 0,
    });
    const moved = roundingSpread('bf16', 1, {
      predicted: 2 ** -10 + 2 ** -7,
      noise: 0,
      systematic: 0,
    });
    expect(moved.known).toBe(2 ** -7);
  });
});
