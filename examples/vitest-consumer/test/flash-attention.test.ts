import type { Problem, Tensor } from 'flashproof';
import { assertAttentionKernel, type KernelPromises } from 'flashproof/properties';
import { describeAttentionKernel } from 'flashproof/vitest';
import { describe, expect, it } from 'vitest';
import { blockKeys, flashAttention } from '../src/flash-attention.js';

/** What the kernel takes. Whatever it takes, flashproof's laws must hold for. */
const promises: KernelPromises = { formats: ['fp32'], blockKeys };

describeAttentionKernel('flashAttention', (problem) => flashAttention(problem), promises);

it('notices a sum that is not rescaled when the maximum grows', { timeout: 60_000 }, async () => {
  const broken = (problem: Problem) =>
    flashAttention(problem, (state, factor) => {
      for (let c = 0; c < state.out.length; c++) state.out[c] *= factor;
    });
  const check = assertAttentionKernel(broken, promises, {
    laws: ['within-bound'],
    shrinkSeconds: 1,
    // A fixed seed: what is to be found must be there in every run.
    seed: 1,
  });
  await expect(check).rejects.toThrow(/^the kernel violates 1 of 1 law .*\n\nwithin-bound: /);
});

describe('on a problem of my own', () => {
  const waves = (phase: number, ...shape: number[]): Tensor => {
    const length = shape.reduce((a, b) => a * b);
    const data = Float32Array.from({ length }, (_, i) => Math.sin(phase * (i + 1)));
    return { format: 'fp32', shape, data };
  };
  const problem: Problem = {
    q: waves(0.7, 1, 2, 50, 16),
    k: waves(1.1, 1, 1, 70, 16),
    v: waves(1.3, 1, 1, 70, 16),
    scale: 0.25,
    causal: true,
    window: null,
    softcap: null,
  };

  it('matches attention', () => {
    expect(flashAttention(problem)).toMatchAttention(problem);
  });

  it('keeps every element within its bound', () => {
    const { out } = flashAttention(problem);
    expect(out).toBeWithinBound(problem);
    (out.data as Float32Array)[3] += 1e-3;
    expect(out).not.toBeWithinBound(problem);
  });
});
