import { expect, it } from 'vitest';
import { openTensorFile, readProblem, writeSafetensors } from '../../src/io/index.js';
import { patternTensor } from '../problem/packed-problem.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

it('lists of blocks and of full blocks are one, full blocks first', async () => {
  const path = folder.at('problem.safetensors');
  const list = (shape: readonly number[], ...values: number[]) => ({
    shape,
    data: Int32Array.from(values),
  });
  const tensors = {
    q: patternTensor([1, 1, 4, 4], 'bf16'),
    k: patternTensor([1, 1, 10, 4], 'bf16'),
    v: patternTensor([1, 1, 10, 4], 'bf16'),
    kv_num_blocks: list([1, 1, 2], 2, 0),
    kv_indices: list([1, 1, 2, 2], 1, 4, 9, 9),
    full_kv_num_blocks: list([1, 1, 2], 1, 2),
    full_kv_indices: list([1, 1, 2, 3], 3, 9, 9, 0, 2, 9),
  };
  const sizes = { block_q: '2', block_k: '2' };
  await writeSafetensors(path, tensors, sizes, { durable: false });
  const file = await openTensorFile(path);
  try {
    const { blockMask } = await readProblem(file, {});
    expect(blockMask?.counts.data).toEqual(Int32Array.of(3, 2));
    const listed = (row: number, count: number) =>
      Array.from(blockMask?.indices.data.subarray(5 * row, 5 * row + count) ?? []);
    expect(listed(0, 3)).toEqual([3, 1, 4]);
    expect(listed(1, 2)).toEqual([0, 2]);
  } finally {
    await file.close();
  }
});
