import { it } from 'vitest';
import { attentionOracle } from '../oracles/index.js';
import { anyKernelArithmetic, auditAccuracy, fa4Arithmetic, forEachRowsBound } from '../src/audit/index.js';
import { normalProblem } from '../src/bench/normal-problem.js';
it('timing', () => {
  const least = (work: () => void) => {
    let best = Infinity;
    for (let i = 0; i < 7; i++) { const b = process.cpuUsage(); work(); const u = process.cpuUsage(b); best = Math.min(best, (u.user + u.system) / 1000); }
    return best.toFixed(0);
  };
  for (const causal of [false, true]) {
    const problem = { ...normalProblem('bf16', { heads: 1, seqlen: 1024, dim: 64 }), causal };
    const options = { accuracy: auditAccuracy('bf16') };
    const reference = attentionOracle(problem, options);
    console.log('T', causal, 'oracle', least(() => attentionOracle(problem, options)), 'any', least(() => forEachRowsBound(problem, reference, anyKernelArithmetic(problem, 'bf16'), () => undefined)), 'fa4', least(() => forEachRowsBound(problem, reference, fa4Arithmetic(problem), () => undefined)));
  }
}, 600000);
