import { closeSync, ftruncateSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { expect, it, vi } from 'vitest';
import { openTensorFile } from '../../src/io/index.js';
import { npyBytes, npyDict } from './npy-bytes.js';
import { described, safetensorsBytes } from './safetensors-bytes.js';
import { expectRefusal, temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();
const gigabyte = 2 ** 30;

/** A file of a header and `dataBytes` zeros that take no room on the disk, but for `marks`. */
function sparseFile(
  name: string,
  header: Uint8Array,
  dataBytes: number,
  marks: readonly (readonly [offset: number, bytes: Uint8Array])[],
): string {
  const path = folder.at(name);
  const descriptor = openSync(path, 'w');
  writeSync(descriptor, header);
  ftruncateSync(descriptor, header.length + dataBytes);
  for (const [offset, bytes] of marks)
    writeSync(descriptor, bytes, 0, bytes.length, header.length + offset);
  closeSync(descriptor);
  return path;
}

/** How many bytes are read of files while `use` runs, and what it gives. */
async function countingReads<T>(path: string, use: () => Promise<T>): Promise<[number, T]> {
  const handle = await open(path);
  const read = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'read');
  try {
    const result = await use();
    const reads = await Promise.all(read.mock.results.map(({ value }) => value));
    return [reads.reduce((sum, { bytesRead }) => sum + bytesRead, 0), result];
  } finally {
    read.mockRestore();
    await handle.close();
  }
}

it('reads a window of a 6 GB tensor without reading or taking memory for the rest', async () => {
  const bytes = 6 * gigabyte;
  const elements = bytes / 4;
  const start = elements - (1 << 20);
  const path = sparseFile(
    'large.safetensors',
    safetensorsBytes({
      small: described('BF16', [2], 0, 4),
      x: described('F32', [elements], 4, bytes + 4),
    }),
    bytes + 4,
    [[4 + start * 4 + 40, new Uint8Array(Float32Array.of(2.5).buffer)]],
  );
  expect(statSync(path).blocks * 512).toBeLessThan(1 << 20);
  const before = process.memoryUsage();
  const [bytesRead, { file, window }] = await countingReads(path, async () => {
    const file = await openTensorFile(path);
    return { file, window: await file.readElements('x', start, 1 << 18) };
  });
  const after = process.memoryUsage();
  expect(window).toHaveLength(1 << 18);
  expect(window[10]).toBe(2.5);
  expect(window[11]).toBe(0);
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(16 * 2 ** 20);
  expect(bytesRead).toBeGreaterThanOrEqual(4 * window.length);
  expect(bytesRead).toBeLessThan(2 * 4 * window.length);
  await file.close();
  rmSync(path);
});

it('reads a range of a 3 GB Fortran-order array by its few pages', async () => {
  // Shape (3 GiB / 2^20, 2^20) of bytes: the row-major neighbours (r, c), (r, c + 1) lie 3072 apart.
  const [rows, columns] = [3072, 1 << 20];
  const path = sparseFile(
    'large.npy',
    npyBytes(npyDict("'|u1'", `(${rows}, ${columns})`, 'True')),
    rows * columns,
    [[5 + rows * 700_000, Uint8Array.of(7, 8)]],
  );
  const file = await openTensorFile(path, { formats: { large: 'e4m3' } });
  const before = process.memoryUsage().arrayBuffers;
  const window = await file.readElements('large', 5 * columns + 699_999, 3);
  expect([...window]).toEqual([0, 7, 0]);
  expect([...(await file.readElements('large', 6 * columns + 700_000, 1))]).toEqual([8]);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 2 ** 20);
  await file.close();
  rmSync(path);
});

it('refuses, and does not crash, when a tensor does not fit in one array', async (context) => {
  const bytes = 2 ** 43;
  const path = folder.at('huge.safetensors');
  try {
    sparseFile(
      'huge.safetensors',
      safetensorsBytes({ q: described('F64', [bytes / 8], 0, bytes) }),
      bytes,
      [],
    );
  } catch (error) {
    // Some file systems have no files of this size, sparse or not.
    expect((error as NodeJS.ErrnoException).code).toBe('EFBIG');
    rmSync(path);
    context.skip();
  }
  const file = await openTensorFile(path);
  await expectRefusal(() => file.read('q'), path, 'tensor "q"', 'do not fit in memory');
  await file.close();
  rmSync(path);
});
