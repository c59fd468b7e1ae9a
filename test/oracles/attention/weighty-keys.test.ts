import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryLevel } from '../../../oracles/attention/arbitrary-level.js';
import { scoreConstants } from '../../../oracles/attention/scores.js';
import {
  exponentIntervals,
  weightyRow,
  withDroppedKeys,
} from '../../../oracles/attention/weighty-keys.js';
import { attentionOracle, levels, type Accuracy } from '../../../oracles/index.js';
import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import { nextUpFloat64 } from '../../../src/arith/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { loadMpfr } from '../mpfr.js';
import { arbitrarySolver, doubleDoubleSolver, levelSolver, oracleSolver } from './oracle-levels.js';
import { singleHead } from '../../setup/problems.js';
import { assertWithinRadii, RadiusUse } from './radius-check.js';
import { withReference } from './reference-attention.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();
const audit: Accuracy = { outputFormat: 'bf16', ulpFraction: 0, magnitudeFraction: 2 ** -40 };

const element = fc.oneof(
  fc.integer({ min: -4096, max: 4096 }).map((x) => x / 1024),
  fc.double({ min: -4, max: 4, noNaN: true, noDefaultInfinity: true }),
);

/**
 * Problems whose scores are of the order 2^40 … 2^100: keys of their own, keys that repeat another,
 * and keys that differ from another in the last bit of one element.
 */
const hugeScores: fc.Arbitrary<Problem> = fc
  .record({
    format: fc.constantFrom('bf16' as const, 'fp32' as const, 'fp64' as const),
    dim: fc.integer({ min: 1, max: 5 }),
    keys: fc.integer({ min: 1, max: 12 }),
    power: fc.integer({ min: 20, max: 50 }),
    scale: fc.constantFrom(1, -1, 0.125, 0.3),
    causal: fc.boolean(),
    softcap: fc.constantFrom(null, null, null, 30, 2 ** 50),
  })
  .chain(({ format, dim, keys, power, scale, causal, softcap }) => {
    const row = fc.array(element, { minLength: dim, maxLength: dim });
    const key = fc.record({
      row,
      copies: fc.nat(keys),
      kind: fc.constantFrom('own', 'repeated', 'near'),
    });
    const value = fc.record({ x: element, power: fc.constantFrom(0, 0, 0, -60, 60) });
    return fc
      .record({
        q: fc.array(row, { minLength: 2, maxLength: 2 }),
        k: fc.array(key, { minLength: keys, maxLength: keys }),
        v: fc.array(value, { minLength: keys, maxLength: keys }),
      })
      .map(({ q, k, v }) => {
        const size = 2 ** power;
        const rows = k.map(({ row }) => row);
        const keyRows = k.map(({ row, copies, kind }) => {
          const from = kind === 'own' ? row : rows[copies % keys];
          const step = (x: number) => (format === 'fp32' ? Math.fround(x * (1 + 2 ** -23)) : x);
          const near = (x: number) => (format === 'fp64' ? nextUpFloat64(x) : step(x));
          return from.map((x, t) => (kind === 'near' && t === 0 ? near(x) : x) * size);
        });
        return singleHead(
          format,
          {
            q: q.map((row) => row.map((x) => x * size)),
            k: keyRows,
            v: v.map(({ x, power }) => [x, x * 2 ** power]),
          },
          { scale, causal, softcap },
        );
      });
  });

describe('scores beyond 2^40', () => {
  inTurn(
    'give values within their radii, ties and near ties among them',
    { timeout: 600_000 },
    () => {
      const solvers = [
        oracleSolver(),
        oracleSolver(audit),
        doubleDoubleSolver,
        arbitrarySolver(192),
      ];
      fc.assert(
        fc.property(hugeScores, (problem) => {
          withReference(mpfr, problem, (reference) => {
            for (const solve of solvers)
              assertWithinRadii(problem, reference, solve, new RadiusUse());
          });
        }),
        { seed: testSeed, numRuns: scaled(100) },
      );
    },
  );

  it('need no arbitrary precision but where values cancel or vanish', () => {
    const problems = fc.sample(hugeScores, { seed: 1, numRuns: 400 });
    // Under a value of zero the largest weight leaves O to weights that are next to nothing.
    const weighty = ({ v }: Problem) =>
      decodeToFloat64(v.data, formats[v.format]).every((value) => Math.abs(value) > 2 ** -80);
    const met = problems
      .filter((problem) => problem.softcap === null && weighty(problem))
      .flatMap((problem) => Array.from(attentionOracle(problem, { accuracy: audit }).level))
      .map((level) => levels[level]);
    expect(met.filter((level) => level === 'double-double').length).toBeGreaterThan(20);
    expect(met).not.toContain('arbitrary');
  });

  it('keep both of two keys of equal score', () => {
    const big = 2 ** 40;
    const {
      quantities: {
        out: { values: out },
        lse: { values: lse },
      },
    } = attentionOracle(
      singleHead('fp32', {
        q: [[big, 1]],
        k: [
          [big, 0],
          [-big, 0],
          [big, 0],
          [big, 1],
        ],
        v: [[3], [100], [5], [7]],
      }),
    );
    const e = Math.E;
    expect(out[0]).toBeCloseTo((3 + 5 + 7 * e) / (2 + e), 12);
    expect(lse[0]).toBe(2 ** 80);
  });
});

describe('dropped keys', () => {
  // Few octaves, so that what the dropped keys amount to is far above every other error.
  for (const octaves of [3, 6, 12])
    it(`of weights below 2^-${octaves} are within the radius`, () => {
      let dropped = 0;
      const droppingSolver = levelSolver('arbitrary', (row, law) => {
        const intervals = exponentIntervals(row, law, scoreConstants(law));
        const weighty = weightyRow(row, intervals, octaves);
        dropped += weighty.dropped;
        const { columnLargest } = row.values;
        return withDroppedKeys(arbitraryLevel(weighty.row, law, 192), weighty, columnLargest);
      });
      const use = new RadiusUse();
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.double({ min: -9, max: 9, noNaN: true }), element), {
            minLength: 2,
            maxLength: 20,
          }),
          (keys) => {
            const problem = singleHead('fp64', {
              q: [[1]],
              k: keys.map(([score]) => [score]),
              v: keys.map(([, value]) => [value]),
            });
            withReference(mpfr, problem, (reference) => {
              const rows = droppingSolver(problem);
              for (const { result } of rows) {
                // Σ p|v| has no radius of its own; what is dropped is not in it.
                for (let c = 0; c < reference.vDim; c++)
                  expect(reference.outDistance(0, c, result.out[c])).toBeLessThanOrEqual(
                    result.outRadius[c],
                  );
                expect(reference.lseDistance(0, result.lse)).toBeLessThanOrEqual(result.lseRadius);
                use.add('arbitrary', reference.lseDistance(0, result.lse) / result.lseRadius);
              }
            });
          },
        ),
        {
          seed: testSeed,
          numRuns: scaled(60),
          // Draws alone need not hold a key so far below the others; this one's weight is just dropped.
          examples: [
            [
              [
                [0, 1],
                [-(octaves + 1.25) * Math.LN2, 3],
              ],
            ],
          ],
        },
      );
      expect(dropped).toBeGreaterThan(0);
      // The bound is of the right size: some draw uses more than a hundredth of it.
      expect(use.summary()['arbitrary'].largest).toBeGreaterThan(0.01);
    });

  it('are none whose interval could hold the largest exponent', () => {
    const score = 2 ** 60;
    const solver = levelSolver('kept', (row, law) => {
      const { row: kept } = weightyRow(row, exponentIntervals(row, law, scoreConstants(law)), 1);
      expect(Array.from(kept.visible)).toEqual([0, 1, 2]);
      return arbitraryLevel(row, law, 40);
    });
    // The last of the four is apart by more than the error of its score, the others are not.
    solver(
      singleHead('fp64', {
        q: [[1]],
        k: [[score], [nextUpFloat64(score)], [score * (1 - 2 ** -52)], [score * (1 - 2 ** -40)]],
        v: [[1], [2], [3], [4]],
      }),
    );
  });
});
