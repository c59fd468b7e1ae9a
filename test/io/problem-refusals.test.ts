import { describe, expect, it } from 'vitest';
import {
  openTensorFile,
  readProblem,
  writeSafetensors,
  type ProblemSettings,
} from '../../src/io/index.js';
import type { IntegerTensor, StoredTensors } from '../../src/problem/index.js';
import { patternTensor } from '../problem/packed-problem.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

function integers(...values: number[]): IntegerTensor {
  return { shape: [values.length], data: Int32Array.from(values) };
}

const fp32 = (values: readonly number[], shape: readonly number[] = [values.length]) => ({
  format: 'fp32' as const,
  shape,
  data: Float32Array.from(values),
});

function truths(shape: readonly number[], value: number) {
  return { shape, data: new Uint8Array(shape.reduce((a, b) => a * b, 1)).fill(value) };
}

/** Two sequences of 2 and 1 queries, of 3 and 4 keys. */
const packed: StoredTensors = {
  q: patternTensor([3, 2, 4], 'bf16'),
  k: patternTensor([7, 1, 4], 'bf16'),
  v: patternTensor([7, 1, 4], 'bf16'),
  cu_seqlens_q: integers(0, 2, 3),
  cu_seqlens_k: integers(0, 3, 7),
};

/** Two sequences with pages of two keys, the last page unused. */
const paged: StoredTensors = {
  q: patternTensor([2, 2, 1, 4], 'bf16'),
  k: patternTensor([5, 2, 1, 4], 'bf16'),
  v: patternTensor([5, 2, 1, 4], 'bf16'),
  block_table: { shape: [2, 2], data: Int32Array.of(3, 0, 1, 2) },
  seqused_k: integers(3, 4),
};

const padded: StoredTensors = {
  q: patternTensor([2, 2, 3, 4], 'bf16'),
  k: patternTensor([2, 1, 5, 4], 'bf16'),
  v: patternTensor([2, 1, 5, 4], 'bf16'),
  seqused_k: integers(5, 3),
};

const dense: StoredTensors = {
  q: patternTensor([1, 2, 3, 4], 'bf16'),
  k: patternTensor([1, 1, 5, 4], 'bf16'),
  v: patternTensor([1, 1, 5, 4], 'bf16'),
};

async function read(
  tensors: StoredTensors,
  metadata: Record<string, string> = {},
  settings: ProblemSettings = {},
) {
  const path = folder.at('problem.safetensors');
  await writeSafetensors(path, tensors, metadata, { durable: false });
  const file = await openTensorFile(path);
  try {
    return await readProblem(file, settings);
  } finally {
    await file.close();
  }
}

type Refusal = readonly [
  what: string,
  tensors: StoredTensors,
  says: RegExp,
  metadata?: Record<string, string>,
];

const refusals: readonly Refusal[] = [
  [
    'cu_seqlens that decrease',
    { ...packed, cu_seqlens_k: integers(0, 5, 4) },
    /cu_seqlens_k decreases from 5 to 4 at element 2/,
  ],
  [
    'cu_seqlens that do not begin with 0',
    { ...packed, cu_seqlens_q: integers(1, 2, 3) },
    /cu_seqlens_q begins with 1; it must begin with 0/,
  ],
  [
    'cu_seqlens beyond the rows',
    { ...packed, cu_seqlens_q: integers(0, 2, 9) },
    /cu_seqlens_q ends with 9, but q has 3 rows/,
  ],
  [
    'cosines of a rotation without its sines',
    { ...dense, rope_cos: fp32(new Array<number>(10).fill(1), [5, 2]) },
    /there is rope_cos but no rope_sin; give both/,
  ],
  [
    'tables of a rotation of another rank',
    { ...dense, rope_cos: fp32([1, 1]), rope_sin: fp32([0, 0]) },
    /rope_cos has shape \[2\]; give rope_cos and rope_sin as \[positions, pairs\]/,
  ],
  [
    'a rotation of more elements than there are',
    {
      ...dense,
      rope_cos: fp32([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2], [5, 3]),
      rope_sin: fp32(new Array<number>(15).fill(0), [5, 3]),
    },
    /rope_cos has 3 columns, q and k have 4 elements; give a column for each pair/,
  ],
  [
    'a rotation of fewer positions than keys',
    {
      ...dense,
      rope_cos: fp32(new Array<number>(8).fill(1), [4, 2]),
      rope_sin: fp32(new Array<number>(8).fill(0), [4, 2]),
    },
    /rope_cos has 4 positions, and a sequence has 5/,
  ],
  [
    'a rotation by what is no number',
    {
      ...dense,
      rope_cos: fp32(new Array<number>(10).fill(1), [5, 2]),
      rope_sin: fp32([...new Array<number>(9).fill(0), NaN], [5, 2]),
    },
    /rope_sin has an element that is no finite number/,
  ],
  ['cu_seqlens of nothing', { ...packed, cu_seqlens_q: integers() }, /cu_seqlens_q is empty/],
  [
    'cu_seqlens of rank 2',
    { ...packed, cu_seqlens_q: { shape: [1, 3], data: Int32Array.of(0, 2, 3) } },
    /cu_seqlens_q has shape \[1, 3\]; give it rank 1/,
  ],
  [
    'different numbers of sequences',
    { ...packed, cu_seqlens_k: integers(0, 7) },
    /2 sequences of queries and 1 of keys/,
  ],
  [
    'packed queries alone',
    { ...packed, cu_seqlens_k: integers(0, 7), cu_seqlens_q: integers(0, 1, 2, 3) },
    /3 sequences of queries and 1 of keys/,
  ],
  [
    'packed tensors of rank 4',
    { ...packed, q: patternTensor([1, 2, 3, 4], 'bf16') },
    /with cu_seqlens_q give it rank 3 \[total, heads, dim\]/,
  ],
  [
    'more used keys than there is room for',
    { ...padded, seqused_k: integers(5, 6) },
    /seqused_k gives sequence 1 6 rows, which has room for 5/,
  ],
  [
    'used keys below zero',
    { ...padded, seqused_k: integers(5, -1) },
    /seqused_k gives sequence 1 -1 rows/,
  ],
  [
    'used lengths of another batch',
    { ...padded, seqused_k: integers(5, 3, 1) },
    /seqused_k is for 3 sequences, k for 2/,
  ],
  [
    'padding beyond what is used',
    { ...padded, leftpad_k: integers(0, 4) },
    /leftpad_k of sequence 1 is 4, but 3 slots are used/,
  ],
  [
    'a page that there is not',
    { ...paged, block_table: { shape: [2, 2], data: Int32Array.of(3, 0, 1, 5) } },
    /page 5 for page 1 of sequence 1, which is used; there are 5 pages/,
  ],
  [
    'a negative page that is used',
    { ...paged, block_table: { shape: [2, 2], data: Int32Array.of(3, -1, 1, 2) } },
    /page -1 for page 1 of sequence 0, which is used/,
  ],
  [
    'a table of pages of rank 1',
    { ...paged, block_table: integers(3, 0, 1, 2) },
    /block_table has shape \[4\]; give it \[batch, pages\]/,
  ],
  [
    'v of another page size',
    { ...paged, v: patternTensor([5, 3, 1, 4], 'bf16') },
    /v \[5, 3, 1, 4\]; all sizes but the last must be equal/,
  ],
  [
    'segments of packed sequences',
    { ...packed, q_segments: integers(0, 0, 1), k_segments: integers(0, 0, 0, 0, 0, 0, 1) },
    /packed sequences cannot be combined with segments/,
  ],
  [
    'a mask of all rows of packed sequences',
    { ...packed, mask: truths([3, 7], 1) },
    /of several sequences give it as many queries as the longest has \(2\)/,
  ],
  [
    'a bias that does not fit',
    { ...dense, bias: fp32([1, 2]) },
    /bias has shape \[2\]; give one that is broadcast to \[1, 2, 3, 5\]/,
  ],
  [
    'a mask that is false everywhere',
    { ...dense, mask: truths([3, 5], 0) },
    /mask is false everywhere/,
  ],
  [
    'a mask of numbers',
    { ...dense, mask: fp32(new Array<number>(15).fill(0), [3, 5]) },
    /holds fp32 numbers where booleans belong; .* give --bias <file>:mask/,
  ],
  [
    'a mask of other bytes',
    { ...dense, mask: truths([3, 5], 2) },
    /the byte 2 at element 0, neither false nor true/,
  ],
  ['NaN in a sink', { ...dense, sink: fp32([0, NaN]) }, /sink has NaN at element 1/],
  [
    'a sink of other heads',
    { ...dense, sink: fp32([0, 1, 2]) },
    /sink has shape \[3\]; give it \[2\]/,
  ],
  [
    'infinity in a slope',
    { ...dense, alibi_slopes: fp32([1, Infinity]) },
    /alibi_slopes has Infinity at element 1/,
  ],
  ['NaN in a bias', { ...dense, bias: fp32([0, 0, 0, 0, NaN]) }, /bias has NaN at element 4/],
  [
    'segments of queries alone',
    { ...dense, q_segments: integers(0, 0, 1) },
    /there is q_segments but no k_segments; give both, or --ignore q_segments/,
  ],
  [
    'counts of blocks alone',
    { ...dense, kv_num_blocks: { shape: [1, 1, 1], data: Int32Array.of(1) } },
    /there is kv_num_blocks but no kv_indices/,
  ],
  [
    'a block that there is not',
    {
      ...dense,
      kv_num_blocks: { shape: [1, 1, 1], data: Int32Array.of(1) },
      kv_indices: { shape: [1, 1, 1, 1], data: Int32Array.of(1) },
    },
    /kv_indices has 1 at element 0; there are 1 blocks of 128 keys/,
  ],
  [
    'dropout without a probability',
    { ...dense, dropout_mask: truths([3, 5], 1) },
    /dropout_mask but no dropout_p/,
  ],
  [
    'a probability of 1',
    { ...dense, dropout_mask: truths([3, 5], 1) },
    /metadata dropout_p is "1"; give a number from 0 to below 1/,
    { dropout_p: '1' },
  ],
  [
    'a prefix that is no number',
    dense,
    /metadata prefix is "run"; give a whole number of keys/,
    { prefix: 'run' },
  ],
];

describe('a problem is refused in one line, for', () => {
  for (const [what, tensors, says, metadata = {}] of refusals)
    it(what, async () => {
      await expectRefusal(() => read(tensors, metadata), /^\/.*problem\.safetensors: /, says);
    });

  it('pages that are used more often than fits in memory', async () => {
    const heavy: StoredTensors = {
      q: patternTensor([1, 1, 1, 4], 'bf16'),
      k: patternTensor([1, 1 << 12, 1, 4], 'bf16'),
      v: patternTensor([1, 1 << 12, 1, 4], 'bf16'),
      // 2^30 keys of a page of 2^12.
      block_table: { shape: [1, 1 << 18], data: new Int32Array(1 << 18) },
    };
    await expectRefusal(
      () => read(heavy),
      /1073741824 rows of k, which do not fit in memory gathered/,
    );
  });
});

describe('what is not used', () => {
  it('may be anything: table entries, rows behind the last sequence', async () => {
    const table = { shape: [2, 2], data: Int32Array.of(3, -1, 99, 2) };
    const problem = await read({ ...paged, block_table: table, seqused_k: integers(2, 0) });
    expect(problem.sequences?.map(({ keys }) => keys)).toEqual([2, 0]);
    const tail = await read({ ...packed, cu_seqlens_q: integers(0, 1, 2) });
    expect(tail.q.shape).toEqual([1, 2, 2, 4]);
  });

  it('is left out by --ignore: a tensor, and a note', async () => {
    const mask = truths([3, 5], 0);
    const problem = await read(
      { ...dense, mask },
      { prefix: 'run' },
      { ignored: ['mask', 'prefix'] },
    );
    expect(problem.mask).toBeUndefined();
    expect(problem.prefix).toBeUndefined();
  });
});

describe('integers', () => {
  it('of any width are read, and refused beyond 32 bits', async () => {
    const path = folder.at('wide.safetensors');
    const header = (dtype: string, bytes: number) =>
      JSON.stringify({ a: { dtype, shape: [2], data_offsets: [0, 2 * bytes] } });
    const write = (dtype: string, data: ArrayBufferView) => {
      const text = Buffer.from(header(dtype, data.byteLength / 2));
      const length = Buffer.alloc(8);
      length.writeBigUInt64LE(BigInt(text.length));
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      return folder.write('wide.safetensors', Buffer.concat([length, text, bytes]));
    };
    const readIntegers = async (dtype: string, data: ArrayBufferView) => {
      write(dtype, data);
      const file = await openTensorFile(path);
      try {
        return [...(await file.readIntegers('a')).data];
      } finally {
        await file.close();
      }
    };
    expect(await readIntegers('U8', Uint8Array.of(0, 255))).toEqual([0, 255]);
    expect(await readIntegers('I8', Int8Array.of(-1, 1))).toEqual([-1, 1]);
    expect(await readIntegers('I16', Int16Array.of(-300, 300))).toEqual([-300, 300]);
    expect(await readIntegers('I64', BigInt64Array.of(-5n, 2n ** 31n - 1n))).toEqual([
      -5, 2147483647,
    ]);
    for (const value of [2n ** 31n, -(2n ** 31n) - 1n, 2n ** 53n + 1n, 2n ** 62n])
      await expectRefusal(
        () => readIntegers('I64', BigInt64Array.of(0n, value)),
        'which 32 bits do not hold',
      );
    await expectRefusal(
      () => readIntegers('BF16', Uint16Array.of(0, 1)),
      'holds bf16 numbers where whole numbers or booleans belong',
    );
    await expectRefusal(
      () => readIntegers('BOOL', Uint8Array.of(0, 1)),
      'holds booleans where integers belong',
    );
  });
});
