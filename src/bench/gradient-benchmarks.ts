import { attentionOracle, gradientOracle } from '../../oracles/index.js';
import { anyGradientPremises, createGradientBounds } from '../audit/index.js';
import { secondsOf, type Benchmark } from './benchmark.js';
import { normalProblem } from './normal-problem.js';
import { gradientMultiplyAdds } from './oracle-benchmarks.js';

const size = { heads: 2, seqlen: 1024, dim: 64 };
const quickSize = { heads: 1, seqlen: 64, dim: 16 };

/**
 * The bounds of dQ, dK and dV by technique, of any correct kernel, on one thread: standard normal inputs, dO with the values of V;
 * and their cost beside the oracle that they need.
 */
export const gradientBoundBenchmark: Benchmark = {
  quantities: [
    { name: 'bounds of gradients: bf16', unit: 'multiply-adds/s', better: 'higher' },
    { name: 'bounds of gradients: bf16: time', unit: 'oracles', better: 'lower' },
  ],
  prepare: (quick) => {
    const problem = normalProblem('bf16', quick ? quickSize : size);
    const dout = problem.v;
    const reference = attentionOracle(problem);
    const premises = anyGradientPremises(problem, 'bf16');
    const given = { out: null, lse: null };
    return {
      measure: () => {
        const groups = [...gradientOracle(problem, dout)];
        const oracle = secondsOf(() => void [...gradientOracle(problem, dout)]);
        const bounds = secondsOf(() => {
          groups.forEach(createGradientBounds({ problem, dout, reference, premises, given }));
        });
        return [gradientMultiplyAdds(problem) / bounds, bounds / oracle];
      },
    };
  },
};
