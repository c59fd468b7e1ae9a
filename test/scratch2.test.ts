import { it } from 'vitest';
import { attentionOracle, gradientOracle } from '../oracles/index.js';
import { randomValues } from '../properties/problems/values.js';
import { filledProblem, tensor } from './setup/problems.js';
import { anyGradientPremises, createGradientBounds } from '../src/audit/gradients/bounds/index.js';
it('time', { timeout: 100000 }, () => {
  const random = randomValues(1);
  const problem = filledProblem({ queries: 1024, keys: 1024, dim: 64 }, random.normal);
  const dout = tensor('bf16', [1, 1, 1024, 64], random.normal);
  const reference = attentionOracle(problem);
  for (let k = 0; k < 3; k++) {
    const t0 = performance.now();
    const groups = [...gradientOracle(problem, dout)];
    const t1 = performance.now();
    for (const delta of ['any', 'stored-output'] as const) {
      const bound = createGradientBounds({ problem, dout, reference, premises: { ...anyGradientPremises(problem, 'bf16'), delta }, given: { out: { format: 'fp64', shape: [1, 1, 1024, 64], data: reference.quantities.out.values }, lse: null } });
      const from = performance.now();
      groups.map(bound);
      console.log(delta, performance.now() - from, 'oracle', t1 - t0);
    }
  }
});
