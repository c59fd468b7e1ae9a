import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  halfUlp,
  meanRounding,
  operandRounding,
  pairArithmetic,
  roundedNear,
  shortFormat,
  sumErrors,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import {
  anyGradientPremises,
  eagerGradientPremises,
  type GradientPremises,
} from '../../../../src/audit/gradients/bounds/gradient-premises.js';
import { formats, round, smallestNormal, ulp } from '../../../../src/formats/index.js';
import { problemShape } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';
import { roundingOf } from './random-pairs.js';

const shortFormats = ['bf16', 'fp16', 'e4m3', 'e5m2'] as const;
const u32 = 2 ** -24;

/** Numbers of all sizes that a format has, its subnormals and what is below and beyond it. */
const numbersOf = (name: (typeof shortFormats)[number]) =>
  fc
    .tuple(
      fc.double({ min: -1, max: 1, noNaN: true }),
      fc.integer({ min: name === 'bf16' ? -140 : -30, max: 18 }),
    )
    .map(([x, exponent]) => x * 2 ** exponent);

const numberAndFormat = fc
  .constantFrom(...shortFormats)
  .chain((name) =>
    fc.tuple(fc.constant(name), numbersOf(name), fc.double({ min: 0, max: 2, noNaN: true })),
  );

describe('half an ulp and the nearest number', () => {
  it('are those of the format', () => {
    fc.assert(
      fc.property(numberAndFormat, ([name, x]) => {
        const table = formats[name];
        fc.pre(Math.abs(x) < table.maxFinite);
        const short = shortFormat(table);
        expect(halfUlp(short, Math.abs(x))).toBe(ulp(table, x) / 2);
        const wanted = Math.abs(round(table, x) - x);
        expect(Math.abs(roundedNear(short, x) - x)).toBe(wanted);
      }),
    );
  });
});

describe('what rounding an operand does', () => {
  it('is its own rounding where that is certain, at most half an ulp, and no more than is needed', () => {
    fc.assert(
      fc.property(
        numberAndFormat,
        fc.double({ min: 0, max: 1, noNaN: true }),
        ([name, x, share], t) => {
          const table = formats[name];
          const half = ulp(table, x) / 2;
          const error = share * half;
          fc.pre((Math.abs(x) + error) * 1.001 < table.maxFinite && x !== 0);
          const { worst, known, variance } = roundingOf(
            operandRounding(name, u32, [], 1),
            x,
            error,
          );
          const moved = x + (2 * t - 1) * error;
          expect(Math.abs(round(table, moved) - x) - error).toBeLessThanOrEqual(
            worst * (1 + 2 ** -20),
          );
          const most = ulp(table, (Math.abs(x) + error) * (1 + 2 ** -20)) / 2;
          const distance = Math.abs(roundedNear(shortFormat(table), x) - x);
          if (Math.abs(x) + error < (ulp(table, 0) / 2) * 0.999) {
            expect(worst).toBeLessThanOrEqual((Math.abs(x) + error) * (1 + 2 ** -19));
            expect([known, variance]).toEqual([-x, 0]);
            return;
          }
          fc.pre(Math.abs(x) + error > (ulp(table, 0) / 2) * 1.001);
          expect(worst).toBe(Math.min(most, distance + error));
          const isSure = distance + error < most;
          expect(Math.abs(known)).toBe(isSure ? distance : 0);
          if (isSure) expect(variance).toBe(0);
          else expect(variance).toBe(error < most ? distance ** 2 : most ** 2 / 3);
        },
      ),
    );
  });

  it('counts by the worst of the factors that may be there before', () => {
    fc.assert(
      fc.property(
        numberAndFormat,
        fc.array(fc.double({ min: 0.05, max: 3, noNaN: true }), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 3 }),
        ([name, x, share], factors, times) => {
          const table = formats[name];
          const error = (share * ulp(table, x)) / 2;
          const isOther = (f: number) => f < 1 || Math.log2(f) % 1 !== 0;
          const units = factors.filter(isOther);
          const most = (Math.abs(x) + error) * (1 + 2 ** -20);
          const largest = Math.max(1, ...factors);
          fc.pre(units.length > 0 && most * largest < table.maxFinite && Math.abs(x) > 2 ** -400);
          const of = operandRounding(name, u32, factors, times);
          const found = roundingOf(of, x, error);
          if (most * largest < ulp(table, 0) / 2) {
            expect([found.worst, found.known]).toEqual([most, -x]);
            const others = new Set([1, ...units]).size - 1;
            expect(found.byOthers.filter((y) => y === -x).length).toBe(others);
            return;
          }
          const halves = [1, ...units].map((f) => ulp(table, most * f) / 2 / f);
          const half = Math.max(...halves);
          expect(found.worst).toBe(times === 1 ? half : 2 * times * half * (1 + 2 ** -6));
          expect(found.variance).toBe((times * half * half) / 3);
          const least = Math.min(1, ...units);
          const knownBy = (f: number) =>
            Math.abs(x * f) <= smallestNormal(table) ? Math.abs(round(table, x * f) / f - x) : 0;
          expect(Math.abs(Math.abs(found.known) - knownBy(least))).toBeLessThanOrEqual(
            2 ** -40 * Math.abs(x),
          );
          [...new Set([1, ...units])]
            .filter((f) => f !== least)
            .forEach((f, k) => {
              expect(Math.abs(Math.abs(found.byOthers[k]) - knownBy(f))).toBeLessThanOrEqual(
                2 ** -40 * Math.abs(x),
              );
            });
        },
      ),
    );
  });

  it('is unbounded from the largest number on, and nothing where no format is short', () => {
    const { maxFinite } = formats.fp16;
    const plain = operandRounding('fp16', u32, [], 1);
    expect(roundingOf(plain, maxFinite * (1 - 2 ** -19), 0).worst).toBeLessThan(Infinity);
    expect(roundingOf(plain, maxFinite, 0).worst).toBe(Infinity);
    // With what covers its own error it is the largest, exactly.
    const covered = maxFinite / (1 + 2 ** -20);
    expect(covered * (1 + 2 ** -20)).toBe(maxFinite);
    expect(roundingOf(plain, covered, 0).worst).toBe(Infinity);
    expect(roundingOf(operandRounding('fp16', u32, [2], 1), maxFinite / 2, 0).worst).toBe(Infinity);
    expect(roundingOf(plain, NaN, 0).worst).toBe(Infinity);
    const none = { worst: 0, known: 0, variance: 0, byOthers: [0, 0, 0] };
    expect(roundingOf(operandRounding('fp32', u32, [0.3], 2), 1.7, 1)).toEqual(none);
    expect(roundingOf(operandRounding('bf16', 2 ** -8, [], 1), 1.7, 1)).toEqual(none);
  });

  it('knows which factors there are', () => {
    const { format, ...of } = operandRounding('bf16', u32, [-0.3, 2, 0, 0.5, 0.3, 3], 4);
    expect(format).toEqual(shortFormat(formats.bf16));
    expect(of).toEqual({
      units: [0.3, 0.5, 0.3, 3],
      largestUnit: 3,
      smallestUnit: 0.3,
      otherUnits: [1, 0.5, 3],
      times: 4,
    });
  });
});

describe('sums and operations', () => {
  it('lose what their premises say', () => {
    for (const n of [1, 7, 300]) {
      const accumulation = 2 ** -22;
      const of = (sums: GradientPremises['sums']) => sumErrors(n, { accumulation, sums });
      const worst = Math.expm1(n * 2 ** -22 * (1 + 2 ** -10));
      const walk = Math.sqrt(n) * 2 ** -22;
      expect(of('any')).toEqual({ worst, walk, toZero: n * 2 ** -24 });
      expect(of('nearest')).toEqual({ worst, walk, toZero: 0 });
    }
  });

  const frame = { batch: 1, heads: 6, kvHeads: 2, queries: 5, keys: 7, dim: 12, vDim: 8 } as const;
  const dropout = {
    kept: { shape: [1, 6, 5, 7], data: new Uint8Array(210).fill(1) },
    probability: 0.25,
  };

  it.each([
    ['of any kernel', anyGradientPremises, {}],
    ['of a framework', eagerGradientPremises, { softcap: 3 }],
    ['with dropout', eagerGradientPremises, { dropout }],
    [
      'that scales last',
      (...of: Parameters<typeof anyGradientPremises>) => ({
        ...anyGradientPremises(...of),
        scaleBeforeRounding: false,
      }),
      { dropout, scale: -0.3 },
    ],
  ] as const)('%s', (_, premisesOf, changes) => {
    const problem = filledProblem({ ...frame, format: 'bf16' }, () => 1, changes);
    const premises = premisesOf(problem, 'bf16');
    const e = premises.elementwise;
    const isWritten = premises.scores === 'bf16';
    const share = 'dropout' in changes ? 0.75 : 1;
    const of = pairArithmetic(problem, problemShape(problem), premises);
    const factors = share === 1 ? [] : [share];
    const scale = 'scale' in changes ? changes.scale : 1 / Math.sqrt(12);
    const written = isWritten ? 2 ** -8 : 0;
    const ofDropout = share === 1 ? 0 : e * (3 + 1 / 6);
    expect(of).toMatchObject({
      scale,
      softcap: 'softcap' in changes ? 3 : null,
      scores: sumErrors(12, premises),
      products: sumErrors(9, premises),
      overKeys: sumErrors(8, premises),
      overQueries: sumErrors(16, premises),
      tellsApart: false,
      commonScores: sumErrors(12, premises).toZero + e,
      operations: 4 * e + 3 * written,
      operationVariance: meanRounding * (e ** 2 + 2 * written ** 2),
      productRounding: written,
      weightRounding: 2 ** -8,
      elementwiseVariance: meanRounding * e ** 2,
      exponential: premises.exponential,
      tanh: premises.tanh + 4 * e + 3 * written,
      typicalTanh: Math.min(premises.tanh, 2 ** -16.4) + e,
      tanhVariance: (premises.tanh ** 2 + written ** 2) / 3,
      underflow: premises.underflow,
      p: operandRounding('bf16', e, share === 1 ? [] : [1 / 0.75], premises.pRoundings),
      weights: operandRounding('bf16', e, [], 1),
      ds: operandRounding(
        'bf16',
        e,
        premises.scaleBeforeRounding
          ? [scale, ...factors, ...factors.map((x) => x * scale)]
          : factors,
        premises.dsRoundings,
      ),
    });
    expect(of.dropout).toBeCloseTo(ofDropout, 20);
    expect(of.commonProducts).toBeCloseTo(sumErrors(9, premises).toZero + ofDropout, 20);
    const largest = formats[premises.scores].maxFinite * (1 - 2 ** -6);
    expect([of.largestScore, of.largestProduct]).toEqual([largest, largest]);
    expect(premises.pRoundings).toBe(isWritten && share !== 1 ? 2 : 1);
    expect(premises.dsRoundings).toBe(isWritten ? ('softcap' in changes ? 4 : 2) : 1);
  });
});
