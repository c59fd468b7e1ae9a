import { describe, expect } from 'vitest';
import { findingWeight } from '../../../src/machine/index.js';
import { turns } from '../../setup/turns.js';
import { runCaptured } from './captured-launch.js';

const inTurn = turns(import.meta.url);

/** What the build of a kernel for a GPU makes of its tensors; hints are no findings. */
async function resultsOf(name: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const { run } = await runCaptured(name);
  expect(run.findings.filter(({ kind }) => findingWeight(kind) !== 'hint')).toEqual([]);
  expect(run.isComplete).toBe(true);
  return run.tensors;
}

/** The results of one source, compiled for Hopper and for Blackwell. */
async function bothBuilds(kernel: string) {
  const [hopper, blackwell] = [
    await resultsOf(`triton-sm90-${kernel}`),
    await resultsOf(`triton-sm100-${kernel}`),
  ];
  return (tensor: string) => [hopper.get(tensor)!, blackwell.get(tensor)!] as const;
}

const numbers = (bytes: Uint8Array) => new Float32Array(bytes.slice().buffer);

/** The largest difference of two tensors of fp32, and how many elements differ. */
function difference([one, other]: readonly [Uint8Array, Uint8Array]) {
  const [a, b] = [numbers(one), numbers(other)];
  const gaps = Array.from(a, (x, i) => Math.abs(x - b[i]));
  return { largest: Math.max(...gaps), elements: gaps.filter((gap) => gap > 0).length };
}

/** Sums of 256 products of numbers about 1 in size. */
const largestSum = 100;

describe('one source compiled for Hopper and for Blackwell, without a finding in either', () => {
  inTurn.each([
    ['softmax', 'y', 'sums by the same threads'],
    ['matmul-bf16-warps', 'c', 'tensor cores that add 16 products alike, warps with roles or not'],
  ])('%s: the same bits: %s', async (kernel, tensor, _) => {
    const [hopper, blackwell] = (await bothBuilds(kernel))(tensor);
    expect(numbers(hopper).some((x) => x !== 0)).toBe(true);
    expect(blackwell).toEqual(hopper);
  });

  inTurn('matmul-e4m3: other bits: wgmma keeps 13 fraction bits of its sums', async () => {
    const of = await bothBuilds('matmul-e4m3');
    const { largest, elements } = difference(of('c'));
    expect(elements).toBeGreaterThan(0);
    // 8 sums of 32 products, and each truncates 33 terms.
    expect(largest).toBeLessThan(8 * 33 * largestSum * 2 ** -13);
  });

  inTurn('attention: a row has four threads or one, so that its sum may differ', async () => {
    const of = await bothBuilds('attend-tma-d64-causal-warps');
    const { largest } = difference(of('lse'));
    // 200 additions of positive numbers, and the logarithm's last bits.
    expect(largest).toBeLessThan(200 * 2 ** -24 + 2 ** -20);
    const [hopper, blackwell] = of('out');
    const patterns = [hopper, blackwell].map((bytes) => new Uint16Array(bytes.slice().buffer));
    const steps = Array.from(patterns[0], (bits, i) => Math.abs(bits - patterns[1][i]));
    expect(patterns[0].some((bits) => bits !== 0)).toBe(true);
    expect(Math.max(...steps)).toBeLessThanOrEqual(1);
  });
});
