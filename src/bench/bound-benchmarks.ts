import { attentionOracle } from '../../oracles/index.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  fa4Arithmetic,
  forEachRowsBound,
  type KernelArithmetic,
} from '../audit/index.js';
import type { Problem } from '../problem/index.js';
import { secondsOf, type Benchmark } from './benchmark.js';
import { normalProblem } from './normal-problem.js';
import { multiplyAdds } from './oracle-benchmarks.js';

const size = { heads: 1, seqlen: 2048, dim: 128 };
const quickSize = { heads: 1, seqlen: 64, dim: 16 };

/** Bounds are not to cost more than this many oracles. */
const mostOracles = 3;

const cases: readonly (readonly [string, (problem: Problem) => KernelArithmetic])[] = [
  ['fa4', (problem) => fa4Arithmetic(problem)],
  ['any kernel', (problem) => anyKernelArithmetic(problem, 'bf16')],
];

/** The bounds of every technique, and what they cost beside the oracle that they need. */
export const boundBenchmarks: readonly Benchmark[] = cases.map(([name, arithmeticOf]) => ({
  quantities: [
    { name: `bounds of ${name}, bf16`, unit: 'multiply-adds/s', better: 'higher' },
    {
      name: `bounds of ${name}, bf16: time`,
      unit: 'oracles',
      better: 'lower',
      target: mostOracles,
    },
  ],
  prepare: (quick) => {
    const problem = normalProblem('bf16', quick ? quickSize : size);
    const options = { accuracy: auditAccuracy('bf16') };
    const reference = attentionOracle(problem, options);
    const arithmetic = arithmeticOf(problem);
    return {
      measure: () => {
        const oracle = secondsOf(() => void attentionOracle(problem, options));
        const bounds = secondsOf(() =>
          forEachRowsBound(problem, reference, arithmetic, () => undefined),
        );
        return [multiplyAdds(problem) / bounds, bounds / oracle];
      },
    };
  },
}));
