import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertAttentionKernel } from 'flashproof/properties';
import { attention } from './attention.js';

const promises = { formats: ['bf16', 'fp16'] };

test('attention obeys every law', async () => {
  await assertAttentionKernel(attention, promises, { runs: 10 });
});

test('a causal mask aligned to the first key is noticed', async () => {
  const topLeft = (problem) => {
    const right = problem.q.shape.at(-2) - problem.k.shape.at(-2);
    const window = { left: -1, right };
    return attention(
      problem.causal && right >= 0 ? { ...problem, causal: false, window } : problem,
    );
  };
  // A fixed seed: what is to be found must be there in every run.
  const options = { laws: ['within-bound'], shrinkSeconds: 1, seed: 1 };
  await assert.rejects(assertAttentionKernel(topLeft, promises, options), /within-bound: /);
});
