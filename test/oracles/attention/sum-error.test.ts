import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import { loadMpfr } from '../mpfr.js';
import { doubleDoubleSolver, oracleSolver } from './oracle-levels.js';
import { scoredKeys, singleHead } from '../../setup/problems.js';
import { assertWithinRadii, RadiusUse } from './radius-check.js';
import { withReference } from './reference-attention.js';
import { scaled, testSeed } from '../../setup/effort.js';

const mpfr = await loadMpfr();

/** Accepts whatever radius the fp64 level can prove. */
const fp64Level = oracleSolver({ outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 });

describe('sums of the fp64 level whose roundings all go one way', () => {
  it.each([1, 2, 5])(
    'are within their radius, and use a good part of it, over %i tiles',
    (tiles) => {
      // Weights of 1; each addition in [64, 128) loses just less than half an ulp of 2^-46.
      const tile = [64, ...new Array<number>(63).fill(1 + 2 ** -47 * (1 - 2 ** -5))];
      const values = Array.from({ length: tiles }, () => tile).flat();
      const problem = scoredKeys('fp64', new Array<number>(values.length).fill(0), values);
      const use = new RadiusUse();
      withReference(mpfr, problem, (reference) =>
        assertWithinRadii(problem, reference, fp64Level, use),
      );
      expect(use.summary()['fp64'].largest).toBeGreaterThan(0.1);
    },
  );
});

it('compensated dot products are within their bound where all terms cancel', () => {
  // Products from 2^90 down to 2^-20, each with one of opposite sign that misses it by some ulps, and
  // values that cancel, so that an error of the scores is all there is to see.
  const random = randomValues(testSeed);
  const use = new RadiusUse();
  for (let run = 0; run < scaled(300); run++) {
    const pairs = random.integer(1, 6);
    const q: number[] = [];
    const k: number[] = [];
    for (let pair = 0; pair < pairs; pair++) {
      const [a, b] = [1 + random.uniform(), 1 + random.uniform()];
      const size = 2 ** random.integer(-10, 45);
      const near = (x: number) => x * (1 + random.integer(-4, 4) * 2 ** -52);
      q.push(a * size, near(a) * size);
      k.push(b * size, -near(b) * size);
    }
    const order = q.map((_, t) => t).sort(() => random.uniform() - 0.5);
    const shuffled = (x: readonly number[]) => order.map((t) => x[t]);
    const query = shuffled(q);
    const keys = [shuffled(k), shuffled(k).map((x) => x / 2)];
    const dot = (key: readonly number[]) => key.reduce((sum, x, t) => sum + x * query[t], 0);
    const scale = 2 ** -Math.ceil(Math.log2(Math.max(Math.abs(dot(keys[0])), 1)));
    const ratio = Math.exp(Math.max(-300, Math.min(300, (dot(keys[0]) / 2) * scale)));
    const values = [[1], [-ratio]];
    const problem = singleHead('fp64', { q: [query], k: keys, v: values }, { scale });
    withReference(mpfr, problem, (reference) =>
      assertWithinRadii(problem, reference, doubleDoubleSolver, use),
    );
  }
  expect(use.summary()['double-double'].elements).toBeGreaterThan(scaled(225));
});
