import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { attentionProblem } from '../../../properties/index.js';
import { loadMpfr } from '../mpfr.js';
import { oracleSolver } from './oracle-levels.js';
import { assertWithinRadii, RadiusUse } from './radius-check.js';
import { withReference } from './reference-attention.js';
import { scaled, testSeed } from '../../setup/effort.js';

const mpfr = await loadMpfr();

it('the radii of the fp64 level are not vacuous', () => {
  const arbitrary = attentionProblem({
    batch: { max: 1 },
    kvHeads: { max: 1 },
    groupSize: { max: 1 },
    queries: { max: 4 },
    keys: { min: 16, max: 130 },
    qkDim: { min: 4, max: 8 },
    vDim: { min: 2, max: 4 },
    regimes: ['normal', 'outlier-channel'],
    scales: ['default'],
    causal: false,
    window: false,
  });
  const use = new RadiusUse();
  const solve = oracleSolver({ outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 });
  const property = fc.property(arbitrary, (problem) =>
    withReference(mpfr, problem, (reference) => assertWithinRadii(problem, reference, solve, use)),
  );
  fc.assert(property, { seed: testSeed, numRuns: scaled(60) });
  const { fp64, 'fp64 lse': lse } = use.summary();
  for (const { median, largest } of [fp64!, lse!]) {
    expect(median).toBeGreaterThan(0.0005);
    expect(median).toBeLessThan(1);
    expect(largest).toBeLessThanOrEqual(1);
  }
});
