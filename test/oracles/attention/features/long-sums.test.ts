import { expect, it } from 'vitest';
import { attentionOracle, levels } from '../../../../oracles/index.js';
import { randomValues } from '../../../../properties/problems/values.js';
import { auditAccuracy } from '../../../../src/audit/outputs/plan-audit.js';
import { filledProblem } from '../../../setup/problems.js';

it('sums of many tiles stay within their radii, which do not grow with the keys', () => {
  const random = randomValues(7);
  const problem = filledProblem({ queries: 3, keys: 20_011, dim: 8, format: 'bf16' }, () =>
    random.normal(),
  );
  // Maxima that rise late, so that older sums are scaled down.
  problem.k.data.fill(problem.q.data[0], 8 * 15_000, 8 * 15_001);
  const fast = attentionOracle(problem, { accuracy: auditAccuracy('bf16') });
  const exact = attentionOracle(problem, {
    accuracy: { outputFormat: 'fp64', ulpFraction: 2 ** -10, magnitudeFraction: 0 },
  });
  const { out, lse } = fast.quantities;
  expect([...fast.level].map((level) => levels[level])).toEqual(['fp64', 'fp64', 'fp64']);
  out.values.forEach((x, i) => {
    const other = exact.quantities.out;
    expect(Math.abs(x - other.values[i])).toBeLessThanOrEqual(out.radius[i] + other.radius[i]);
    expect(out.radius[i]).toBeLessThan(2 ** -42 * out.magnitude[i]);
  });
  lse.values.forEach((x, i) => {
    const room = lse.radius[i] + exact.quantities.lse.radius[i];
    expect(Math.abs(x - exact.quantities.lse.values[i])).toBeLessThanOrEqual(room);
  });
});
