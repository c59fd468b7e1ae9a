import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import type { Problem } from '../../../src/problem/index.js';
import { loadMpfr } from '../mpfr.js';
import { doubleDoubleSolver, oracleSolver } from './oracle-levels.js';
import { scoredKeys, type Settings } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';
import { assertWithinRadii, RadiusUse } from './radius-check.js';
import { withReference } from './reference-attention.js';
import { scaled, testSeed } from '../../setup/effort.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadMpfr();

/** Accepts whatever radius the fp64 level can prove. */
const fp64Level = oracleSolver({ outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 });

function check(problem: Problem): RadiusUse {
  const use = new RadiusUse();
  withReference(mpfr, problem, (reference) => {
    assertWithinRadii(problem, reference, fp64Level, use);
    assertWithinRadii(problem, reference, doubleDoubleSolver, new RadiusUse());
  });
  return use;
}

/** Keys in tiles of 64 whose scores are about the given number of octaves, values by tile. */
function tiled(
  octaves: readonly number[],
  values: readonly number[],
  settings: Settings = {},
  jitter: (key: number) => number = () => 0,
): Problem {
  const perKey = <T>(of: (tile: number, key: number) => T) =>
    octaves.flatMap((_, tile) => Array.from({ length: 64 }, (_, key) => of(tile, key)));
  return scoredKeys(
    'fp64',
    perKey((tile, key) => (octaves[tile] + jitter(key)) * Math.LN2),
    perKey((tile, key) => values[tile] * (1 + key / 64)),
    settings,
  );
}

describe('the rescaling of the fp64 level', () => {
  it.each([
    ['past the range of fp64 in two steps', [0, 499, 1030], [2 ** 120, 2 ** 120, 0]],
    ['past the range of fp64 in one step', [0, 1030], [1, 0]],
    ['by just less than that', [0, 1022], [1, 0]],
    ['by many small steps', [0, 15, 30, 45, 60, 75, 90], [1, 1, 1, 1, 1, 1, 0]],
    ['by many large steps', [0, 300, 600, 900, 1200, 1500], [1, 1, 1, 1, 1, 0]],
    ['down and up again', [0, -2000, 2000, -500, 2100], [1, 2, 3, 4, 5]],
    ['not at all where the scores fall', [3000, 2000, 1500, 1000], [0, 1, 1, 1]],
    ['at scores far from 0', [-100_000, -99_000, -98_500], [1, 1, 0]],
    ['for huge values', [0, 900, 1800], [2 ** 900, 2 ** 900, 2 ** -900]],
    ['for tiny values', [0, 600, 1200], [2 ** -900, 2 ** -500, 0]],
  ])('raises the reference %s', (_, octaves, values) => {
    expect(check(tiled(octaves, values)).summary()).toHaveProperty('fp64');
  });

  it('keeps weights that are next to those it drops', () => {
    // Weights of 2^-990 to 2^-1010 of the largest, and values that make up for it.
    const octaves = Array.from({ length: 21 }, (_, i) => -990 - i);
    const scores = [0, ...octaves].map((x) => x * Math.LN2);
    const values = [0, ...octaves.map(() => 2 ** 1000)];
    check(scoredKeys('fp64', scores, values));
  });

  inTurn('takes fully masked tiles at either end', () => {
    const octaves = [700, -3, 640, 2000, 10];
    const values = [5, 1, 2, 3, 7];
    for (const window of [
      { left: 3 * 64 - 1, right: -1 },
      { left: 100, right: -1 },
      { left: 64, right: 0 },
      { left: 0, right: -1 },
    ])
      expect(check(tiled(octaves, values, { window })).summary()).toHaveProperty('fp64');
    // A query that sees only the first tiles: with 5 · 64 queries the first sees one key.
    const problem = tiled(octaves, values, { causal: true });
    const queries = { ...problem.q, shape: [1, 1, 320, 1], data: new Float64Array(320).fill(1) };
    const use = new RadiusUse();
    const causal = { ...problem, q: queries };
    withReference(mpfr, causal, (reference) =>
      assertWithinRadii(causal, reference, fp64Level, use),
    );
    expect(use.summary()).toHaveProperty('fp64');
  });

  it('is within its radius for random tiles of scores and masks', () => {
    const octave = fc.oneof(
      fc.integer({ min: -40, max: 40 }),
      fc.integer({ min: -1100, max: 1100 }),
      fc.integer({ min: -30_000, max: 30_000 }),
      fc.constantFrom(0, 16, 17, 500, 501, 1000, 1022, 1023),
    );
    const value = fc.constantFrom(0, 1, -1, 2 ** 500, -(2 ** 500), 2 ** -500, 3);
    const tiles = fc.array(fc.tuple(octave, value), { minLength: 1, maxLength: 5 });
    const reach = fc.integer({ min: -1, max: 320 });
    fc.assert(
      fc.property(tiles, reach, fc.integer({ min: 0, max: 2 ** 30 }), (parts, left, seed) => {
        const random = randomValues(seed);
        const spread = 2 ** random.integer(-3, 5);
        const window = left === -1 ? null : { left, right: -1 };
        check(
          tiled(
            parts.map(([octaves]) => octaves),
            parts.map(([, values]) => values),
            { window },
            () => random.normal() * spread,
          ),
        );
      }),
      { seed: testSeed, numRuns: scaled(40) },
    );
  });
});
