import { describe, expect, it } from 'vitest';
import type { GradientAuditOptions, GradientTensors } from '../../../src/audit/index.js';
import * as jobs from '../../../src/jobs/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { normalProblem, normalTensor, seededRandom } from '../../kernels/features/index.js';
import { backwardKernel, drawDout } from '../../kernels/gradients/index.js';

const random = seededRandom(testSeed);
const problem: Problem = {
  ...normalProblem(random, { batch: 2, heads: 4, kvHeads: 2, queries: 16, keys: 24, dim: 8 }),
  causal: true,
  softcap: 10,
  bias: normalTensor(random, 'bf16', [4, 16, 24], 1),
};
const dout = drawDout(random, problem);
const { out, lse, dq, dk, dv, dbias } = backwardKernel()(problem, dout);
const given = { out, lse, dq, dk, dv };

describe('an audit of gradients on several threads', () => {
  const text = async (
    threads: number,
    tensors: GradientTensors,
    options: GradientAuditOptions = {},
  ) => {
    const told: number[] = [];
    const audit = await jobs.auditGradientsOnThreads(
      problem,
      tensors,
      { ...options, progress: (done) => told.push(done) },
      threads,
      1,
    );
    expect(told.at(-1)).toBeCloseTo(1, 9);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    // NaN and infinities are no JSON.
    return JSON.stringify(audit, (___, x: unknown) =>
      typeof x === 'number' && !Number.isFinite(x) ? String(x) : x,
    );
  };

  it.each<[string, GradientTensors, GradientAuditOptions?]>([
    ['that pass', { dout, ...given }],
    ['without the forward', { dout, dq: given.dq, dv: given.dv }],
    ['of which one fails', { dout, dq: given.dq, dk: given.dv }],
    ['with that of the bias, on one', { dout, ...given, ...(dbias && { dbias }) }],
    [
      'of some rows and keys',
      { dout, ...given },
      { rows: { rows: 40, seed: 1 }, keys: { keys: 40, seed: 1 } },
    ],
  ])('is that of one, bit for bit: %s', async (name, tensors, options) => {
    const one = await text(1, tensors, options);
    expect(one).toContain(name.includes('fails') ? '"status":"FAIL"' : '"status":"PASS"');
    expect(await text(2, tensors, options)).toBe(one);
  });

  it('refuses what one thread refuses', async () => {
    await expect(text(2, { dout, dq: given.dk })).rejects.toThrow(/^dQ has shape/);
  });
});
