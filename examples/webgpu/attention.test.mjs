// @ts-check
import { RequestError } from 'flashproof';
import { describeAttentionKernel } from 'flashproof/vitest';
import { afterAll, describe, expect, it } from 'vitest';
import { requestDevice } from './adapter.mjs';
import { createWebGpuAttention } from './attention.mjs';

/** @import { Problem, Tensor } from 'flashproof' */
/** @import { KernelPromises } from 'flashproof/properties' */

const { device, description } = await requestDevice();
const kernel = await createWebGpuAttention(device);
console.info(description);

afterAll(() => device.destroy());

/**
 * What the kernel takes: attention.wgsl works on 32 keys at a time.
 * @type {KernelPromises}
 */
const promises = {
  formats: ['fp32'],
  scales: ['default', 'odd', 'negative', 'zero'],
  specialValues: true,
  lse: true,
  blockKeys: 32,
};

describeAttentionKernel('attention.wgsl', kernel, promises);

describeAttentionKernel(
  'attention.wgsl with more dimensions and columns than a tile holds',
  kernel,
  {
    ...promises,
    sizes: {
      qkDim: { min: 31, max: 130 },
      vDim: { min: 63, max: 200 },
      keys: { min: 0, max: 70 },
      queries: { min: 0, max: 40 },
    },
  },
  { laws: ['within-bound'] },
);

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
