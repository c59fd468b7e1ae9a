import { describe, expect, it } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { readProblem } from '../../src/io/tensors/index.js';
import { decodeTensor } from '../../src/formats/index.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

/** A safetensors file of tensors as they are. */
function bytesOf(
  tensors: Readonly<
    Record<string, readonly [dtype: string, shape: readonly number[], data: ArrayBufferView]>
  >,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  const parts: Buffer[] = [];
  let offset = 0;
  for (const [name, [dtype, shape, data]] of Object.entries(tensors)) {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    header[name] = { dtype, shape, data_offsets: [offset, (offset += bytes.length)] };
    parts.push(bytes);
  }
  const text = Buffer.from(
    JSON.stringify(header).padEnd(Math.ceil(JSON.stringify(header).length / 8) * 8),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}

const q = Int8Array.from({ length: 2 * 4 * 2 }, (_, i) => i - 8);
const k = Int8Array.of(-128, 127, 0, 1, -1, 64, 5, 6);
const v = Float32Array.from({ length: 8 }, (_, i) => i);
const own = {
  q: ['I8', [2, 4, 2], q],
  k: ['I8', [2, 2, 2], k],
  v: ['F32', [2, 2, 2], v],
} as const;

async function problemOf(name: string, bytes: Uint8Array) {
  const file = await openTensorFile(folder.write(name, bytes));
  try {
    return await readProblem(file);
  } finally {
    await file.close();
  }
}

describe('q and k of 8-bit integers', () => {
  it('are read as the numbers that they are, times their factors', async () => {
    const bytes = bytesOf(
      {
        ...own,
        q_descale: ['F32', [2, 2], Float32Array.of(0.5, 2, 4, 8)],
        k_descale: ['F32', [2], Float32Array.of(1, 0.25)],
      },
      { q_descale_block: '2' },
    );
    const problem = await problemOf('factors.safetensors', bytes);
    expect([problem.q.integers, problem.k.integers, problem.v.integers]).toEqual([
      'int8',
      'int8',
      undefined,
    ]);
    const factors = [0.5, 0.5, 2, 2, 4, 4, 8, 8];
    expect([...decodeTensor(problem.q)]).toEqual(
      [...q].map((x, at) => x * factors[Math.floor(at / 2)] + 0),
    );
    expect([...decodeTensor(problem.k)]).toEqual([-128, 127, 0, 1, -0.25, 16, 1.25, 1.5]);
  });

  it('are refused without factors, in one line that says what to add', async () => {
    await expect(problemOf('none.safetensors', bytesOf(own))).rejects.toThrow(
      /"q": holds 8-bit integers and no factors; add q_descale: a number, or one a head/,
    );
  });
});
