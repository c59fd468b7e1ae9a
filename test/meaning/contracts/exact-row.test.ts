import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { attentionProblem, describeProblem, featureKinds } from '../../../properties/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { multiplyDoubleDoubleByFloat64, subtractDoubleDouble } from '../../../src/arith/index.js';
import { exactAttentionRow, exactFactor } from '../../../src/meaning/contracts/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { loadMpfr } from '../../oracles/mpfr.js';
import {
  featuredProblem,
  oracleFeatures,
  type OracleFeature,
} from '../../oracles/attention/features/featured-problems.js';
import { withReference } from '../../oracles/attention/reference-attention.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, sumNormalNumbers, tensor, uniformNumbers } from '../../setup/problems.js';
import { everyPlace } from './real-values.js';

const mpfr = await loadMpfr();

/** Sums a little above the error that double-double leaves, 2^-104 for a few keys. */
const accuracy = 1e-27;

/** Expects of all rows that they equal those of MPFR, O relative to Σ p|v| and the LSE absolutely. */
function expectReference(problem: Problem, what: string): void {
  const { heads, queries, vDim } = problemShape(problem);
  withReference(mpfr, problem, (reference) => {
    for (const place of everyPlace(problem)) {
      const index = (place.batch * heads + place.head) * queries + place.row;
      const { out, magnitude, lse } = exactAttentionRow(problem, place);
      for (let c = 0; c < vDim; c++) {
        const distance = reference.outDistance(index, c, out[c].high, out[c].low);
        const exact = reference.magnitude(index, c);
        expect(distance, `${what}, O[${index}][${c}]`).toBeLessThanOrEqual(
          accuracy * exact + 2 ** -850,
        );
        expect(Math.abs(magnitude[c].high - exact)).toBeLessThanOrEqual(1e-14 * exact + 2 ** -850);
      }
      const size = Math.max(1, Math.abs(reference.lse(index)));
      if (size === Infinity) expect(lse.high).toBe(-Infinity);
      else
        expect(
          reference.lseDistance(index, lse.high, lse.low),
          `${what}, LSE[${index}]`,
        ).toBeLessThanOrEqual(accuracy * size);
    }
  });
}

/** Drawn features of small problems; a softcap of any size costs digits, and has a test of its own. */
const features = oracleFeatures.filter((one) => one !== 'softcap');
const small = { queries: 3, keys: 8, heads: 2, kvHeads: 1, dim: 5, vDim: 3 };

describe('an exact row of attention', () => {
  it.each(features)('equals MPFR to 1e-27 with %s', (feature) => {
    for (let i = 0; i < scaled(3); i++)
      expectReference(
        featuredProblem(randomValues(testSeed + i), [feature], small),
        `${feature}, seed ${testSeed + i}`,
      );
  });

  it('equals MPFR to 1e-27 with features together', () => {
    for (let i = 0; i < scaled(15); i++) {
      const random = randomValues(testSeed + 7919 * i);
      const some = features.filter((): boolean => random.integer(0, 1) === 1);
      const all: readonly OracleFeature[] = some;
      expectReference(
        featuredProblem(randomValues(testSeed + i), all, small),
        `${all.join(', ')}, seed ${testSeed + i}`,
      );
    }
  });

  it('equals MPFR to 1e-27 with a softcap and with hundreds of keys', () => {
    const normal = sumNormalNumbers(uniformNumbers(testSeed));
    const frame = { queries: 2, keys: 300, dim: 16, vDim: 4 };
    expectReference(filledProblem(frame, normal), 'long rows');
    expectReference(filledProblem(frame, normal, { softcap: 20, scale: 1 }), 'softcap');
  });

  it('lies within the radii of the oracle, whatever the problem has', () => {
    const arbitrary = attentionProblem({
      batch: { max: 2 },
      queries: { max: 6 },
      keys: { max: 40 },
      qkDim: { max: 8 },
      vDim: { max: 4 },
      // Numbers of fp64 may be beyond the range of double-double.
      formats: ['bf16', 'fp16', 'fp32', 'e4m3'],
      features: featureKinds,
      specialValues: ['nan', 'infinity'],
    });
    const check = (problem: Problem) => {
      const { shape, quantities } = attentionOracle(problem);
      const { out, lse } = quantities;
      for (const place of everyPlace(problem)) {
        const row = (place.batch * shape.heads + place.head) * shape.queries + place.row;
        const exact = exactAttentionRow(problem, place);
        const within = (x: number, value: number, radius: number) =>
          Object.is(x + 0, value + 0) || Math.abs(x - value) <= radius;
        exact.out.forEach(({ high }, c) => {
          const at = row * shape.vDim + c;
          // Values as small as that underflow in double-double.
          const floor = 2 ** -53 * Math.abs(high) + 1e-30 * out.magnitude[at] + 2 ** -850;
          if (!within(high, out.values[at], out.radius[at] + floor))
            expect.fail(
              `${describeProblem(problem)}: O[${at}] is ${high}, ${out.values[at]} ± ${out.radius[at]}`,
            );
        });
        const { high } = exact.lse;
        const floor = 1e-15 * Math.max(1, Math.abs(high));
        if (!within(high, lse.values[row], lse.radius[row] + floor))
          expect.fail(
            `${describeProblem(problem)}: LSE[${row}] is ${high}, ${lse.values[row]} ± ${lse.radius[row]}`,
          );
      }
    };
    fc.assert(fc.property(arbitrary, check), { seed: testSeed, numRuns: scaled(60) });
  });

  it('has the factor of another scale as that scale has it', () => {
    const normal = sumNormalNumbers(uniformNumbers(testSeed));
    const frame = { heads: 2, queries: 2, keys: 50, dim: 8 };
    const problem = filledProblem(frame, normal, { scale: 0.3 });
    const other = { ...problem, scale: 0.3 * (1 + 2 ** -20) };
    for (const place of everyPlace(problem)) {
      const a = exactAttentionRow(problem, place, exactFactor(other));
      const b = exactAttentionRow(other, place);
      a.out.forEach((x, c) => {
        const distance = Math.abs(subtractDoubleDouble(x, b.out[c]).high);
        expect(distance).toBeLessThanOrEqual(accuracy * b.magnitude[c].high);
      });
      expect(Math.abs(subtractDoubleDouble(a.lse, b.lse).high)).toBeLessThanOrEqual(
        accuracy * Math.max(1, Math.abs(b.lse.high)),
      );
    }
  });

  it('weighs bias and sink by the factor, too', () => {
    const normal = sumNormalNumbers(uniformNumbers(testSeed));
    const frame = { queries: 3, keys: 20, dim: 4, format: 'fp64' } as const;
    const double = (one: Problem): Problem => ({
      ...one,
      scale: 2 * one.scale,
      ...(one.bias && { bias: tensor('fp64', [3, 20], (i) => 2 * Number(one.bias!.data[i])) }),
      ...(one.sink && { sink: { ...one.sink, logits: tensor('fp64', [1], () => 1.5) } }),
    });
    const problem = filledProblem(frame, normal, {
      bias: tensor('fp64', [3, 20], normal),
      sink: { logits: tensor('fp64', [1], () => 0.75), inLse: true },
    });
    const factor = multiplyDoubleDoubleByFloat64(exactFactor(problem), 2);
    for (const place of everyPlace(problem)) {
      const a = exactAttentionRow(problem, place, factor);
      const b = exactAttentionRow(double(problem), place);
      a.out.forEach((x, c) =>
        expect(Math.abs(subtractDoubleDouble(x, b.out[c]).high)).toBeLessThanOrEqual(
          accuracy * b.magnitude[c].high,
        ),
      );
      expect(Math.abs(subtractDoubleDouble(a.lse, b.lse).high)).toBeLessThanOrEqual(accuracy * 10);
    }
  });
});
