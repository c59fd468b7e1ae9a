import { expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { anyGradientPremises, auditGradients } from '../../../src/audit/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { roundings, simulateBackward } from './simulated-backward.js';

const sizes = { queries: 60, keys: 120, dim: 8, vDim: 4 };

/** What a correct kernel of bf16 gives of a problem passes. */
function expectPass(problem: Problem, dO: () => number, seed: number): void {
  const random = randomValues(seed);
  const dout = tensor('bf16', [1, 1, sizes.queries, sizes.vDim], dO);
  const premises = anyGradientPremises(problem, 'bf16');
  const found = simulateBackward(problem, dout, attentionOracle(problem), premises, {
    makes: new Set(roundings),
    order: 'ascending',
    delta: 'stored-output',
    roundsWeights: false,
    scalesFirst: false,
    storesHeads: false,
    isWritten: false,
    exponential: 'drawn',
    tanh: 'rounded',
    uniform: random.uniform,
  });
  const { q, k, v } = problem;
  const stored = (values: Float64Array, { shape }: { readonly shape: readonly number[] }) => ({
    format: 'bf16' as const,
    shape,
    data: encodeFromFloat64(formats.bf16, values),
  });
  const { dq, dk, dv, out, lse } = found;
  const gradients = { dq: stored(dq, q), dk: stored(dk, k), dv: stored(dv, v) };
  const { verdict } = auditGradients(
    problem,
    { dout, out, lse, ...gradients },
    { diagnose: false },
  );
  expect(verdict.sentence).toMatch(/^PASS/);
}

it.each([1, 2, 3])('of equal queries are alike though they are not known (%i)', (seed) => {
  const random = randomValues(seed);
  let column = 0;
  const q = () => 1 + (column++ % sizes.dim) / 8;
  const k = () => 0.3 * random.normal();
  const problem = filledProblem(sizes, { q, k, v: random.normal });
  expectPass(problem, () => 1 + random.uniform(), seed);
});
