// @ts-check
import * as fc from 'fast-check';
import { RequestError } from 'flashproof';
import { attentionProblem, regimeNames } from 'flashproof/properties';
import 'flashproof/vitest';
import { afterAll, describe, expect, it } from 'vitest';
import { requestDevice } from './adapter.mjs';
import { createWebGpuAttention } from './attention.mjs';

/** @import { Problem, Tensor } from 'flashproof' */
/** @import { ProblemConstraints } from 'flashproof/properties' */

const { device, description } = await requestDevice();
const kernel = await createWebGpuAttention(device);
console.info(description);

afterAll(() => device.destroy());

/**
 * What the kernel promises: fp32, no softcap. Numbers from the whole range of fp32 have scores that
 * overflow, of which WGSL says nothing.
 * @type {ProblemConstraints}
 */
const promises = {
  formats: ['fp32'],
  softcap: false,
  regimes: regimeNames.filter((name) => name !== 'wide-exponents'),
};

/**
 * Judges the kernel's output and LSE on random problems.
 * @param {ProblemConstraints} constraints
 * @param {number} numRuns
 */
async function judge(constraints, numRuns) {
  await fc.assert(
    fc.asyncProperty(attentionProblem({ ...promises, ...constraints }), async (problem) => {
      expect(await kernel(problem)).toMatchAttention(problem);
    }),
    // A failure is simplified until then.
    { numRuns, interruptAfterTimeLimit: 60_000 },
  );
}

// A software driver takes seconds to compile the shader.
describe('attention.wgsl', { timeout: 120_000 }, () => {
  it('is attention', () => judge({}, 60));

  it('is attention where masks leave rows empty, and without queries or keys', () =>
    judge({ causal: true, queries: { min: 0 }, keys: { min: 0, max: 40 } }, 30));

  it('is attention with more dimensions and columns than a tile holds', () =>
    judge({ qkDim: { min: 31, max: 130 }, vDim: { min: 63, max: 200 }, keys: { max: 70 } }, 12));

  // All scores of a row are about the same: for other rows with special values the audit's bound
  // leaves out what the rounding of the scores does to the weights.
  it('carries NaNs and infinities through the formula, but not from behind a mask', () =>
    judge(
      {
        specialValues: ['nan', 'infinity'],
        regimes: ['constant-keys', 'tiny', 'zeros'],
        queries: { max: 40 },
        keys: { max: 70 },
      },
      60,
    ));
});

/**
 * A problem of one query, one key and as many heads as are asked for.
 * @param {Partial<Problem>} changes
 * @param {number} heads
 * @returns {Problem}
 */
function smallProblem(changes, heads = 1) {
  /** @type {Tensor} */
  const ones = { format: 'fp32', shape: [1, heads, 1, 1], data: new Float32Array(heads).fill(1) };
  const plain = { q: ones, k: ones, v: ones, scale: 1, causal: false, window: null, softcap: null };
  return { ...plain, ...changes };
}

describe('a problem that the kernel does not take', () => {
  it.each([
    ['a softcap', { softcap: 30 }, /softcap is 30; .* give null/],
    [
      'bf16',
      { v: { format: 'bf16', shape: [1, 1, 1, 1], data: Uint16Array.of(0x3f80) } },
      /v has format bf16; .* fp32/,
    ],
    ['a scale that fp32 rounds to 0', { scale: 1e-50 }, /scale is 1e-50; .* give 0 or/],
    ['a scale beyond fp32', { scale: 1e39 }, /scale is 1e\+39; .* give 0 or/],
  ])('%s is a RequestError', async (_, changes, message) => {
    const error = await kernel(smallProblem(/** @type {Partial<Problem>} */ (changes))).catch(
      (thrown) => thrown,
    );
    expect(error).toBeInstanceOf(RequestError);
    expect(error.message).toMatch(message);
  });

  it('for want of room on the device, says so and leaves the device usable', async () => {
    const heads = device.limits.maxComputeWorkgroupsPerDimension + 1;
    await expect(kernel(smallProblem({}, heads))).rejects.toThrow(/device cannot run this problem/);
    const { out } = await kernel(smallProblem({}));
    expect([...out.data]).toEqual([1]);
  });
});
