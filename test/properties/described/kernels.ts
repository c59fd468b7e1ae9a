/** Suites that describe-kernel.test.ts runs and looks at from outside; some of them fail. */
import { describe } from 'vitest';
import { UnsupportedProblem, type KernelPromises } from '../../../properties/index.js';
import {
  describeAttentionKernel,
  describeRecurrentKernel,
} from '../../../properties/vitest/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { exactKernel } from '../exact-kernel.js';
import { modelKernel } from '../recurrent/models.js';

const promises: KernelPromises = {
  formats: ['fp32'],
  specialValues: false,
  sizes: { queries: { max: 6 }, keys: { max: 8 }, qkDim: { max: 4 }, vDim: { max: 4 } },
};
/** One law, in regimes of which any correct kernel is sure, with time enough on any machine. */
const scope = {
  ...({ laws: ['within-bound'], regimes: ['normal', 'ones'] } as const),
  seconds: 300,
  shrinkSeconds: 300,
};

function enlarged(problem: Problem) {
  const { out, lse } = exactKernel(problem);
  const data = (out.data as Float32Array).map((x) => x * 1.5);
  return { out: { ...out, data }, lse };
}

describeAttentionKernel('exact', exactKernel, promises, scope);
describe("somebody's (own)", () => {
  describeAttentionKernel('1.5 × too large', async (problem) => enlarged(problem), promises, {
    ...scope,
    runs: 4,
    seed: 7,
  });
});
describeAttentionKernel(
  'takes nothing',
  () => {
    throw new UnsupportedProblem('not today');
  },
  promises,
  { ...scope, runs: 2 },
);
describeAttentionKernel(
  'promises nothing',
  exactKernel,
  {
    ...promises,
    laws: { 'within-bound': 'none' },
  },
  scope,
);
// A kernel of linear attention whose scale is wrong, on the problems that are read most easily.
const additive = modelKernel('naive-recurrent');
describeRecurrentKernel(
  'too large a scale',
  (problem, gradients) => {
    const { scale = problem.q.shape.at(-1)! ** -0.5 } = problem;
    return additive({ ...problem, scale: 1.5 * scale }, gradients);
  },
  { families: ['linear'], formats: ['fp32'], dims: [1], initialState: [] },
  { laws: ['within-bound'], regimes: ['one-token'], seconds: 300, shrinkSeconds: 10, seed: 9 },
);
