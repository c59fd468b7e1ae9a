import { describe, expect, it } from 'vitest';
import {
  checkTensorCopy,
  copyToTensorMemory,
  createSharedMemory,
  createTensorMemory,
  swizzles,
  tensorAddress,
  tensorCopyExtent,
  tensorCopyShapes,
  touchedByTensorCopy,
} from '../../../src/machine/memory/index.js';
import type { SwizzleMode, TensorCopyShape } from '../../../src/machine/memory/index.js';
import { wordSource } from '../../hardware/tensor-core/random-patterns.js';
import { denseDescriptor, placeMatrix } from './canonical-layout.js';
import { firstDifference } from './first-difference.js';

/** The lanes that get a row: the PTX ISA's words on warp pairs, and CuTe's for 4x256b. */
const lanesOfRow: Readonly<Record<TensorCopyShape, (row: number) => number[]>> = {
  '128x256b': (row) => [row],
  '128x128b': (row) => [row],
  '4x256b': (row) => [32 * row],
  // Warps 0 and 2 are a pair and get one half, warps 1 and 3 the other.
  '64x128b.warpx2::02_13': (row) => (row < 32 ? [0, 2] : [1, 3]).map((w) => 32 * w + (row % 32)),
  '64x128b.warpx2::01_23': (row) => (row < 32 ? [0, 1] : [2, 3]).map((w) => 32 * w + (row % 32)),
  '32x128b.warpx4': (row) => [0, 1, 2, 3].map((w) => 32 * w + row),
};
const shapes = Object.keys(lanesOfRow) as TensorCopyShape[];
const modes = Object.keys(swizzles) as SwizzleMode[];

describe.each(shapes)('tcgen05.cp.%s', (shape) => {
  const { rows, k: rowBytes } = tensorCopyExtent(shape);

  it('is named after what it copies', () => {
    const [named, bits] = shape.split('x').map(parseFloat);
    expect([rows, 8 * rowBytes]).toEqual([named, bits]);
    expect(tensorCopyShapes[shape].rows).toBe(rows);
  });

  it.each(modes)('copies each row to its lanes, nothing else: %s swizzled', (swizzle) => {
    const shared = createSharedMemory();
    const word = wordSource(5);
    const matrix = new Uint8Array(rows * rowBytes).map(() => word());
    const source = denseDescriptor(swizzle, 'k', 2048, rowBytes, 1);
    placeMatrix(shared, source, rowBytes, matrix);
    const { store } = createTensorMemory();
    const words = store.words.fill(0xdeadbeef);
    const expected = words.slice();
    const rowWords = new Uint32Array(matrix.buffer);
    for (let row = 0; row < rows; row++)
      for (const lane of lanesOfRow[shape](row))
        for (let i = 0; i < rowBytes / 4; i++)
          expected[lane * 512 + 40 + i] = rowWords[(row * rowBytes) / 4 + i];
    copyToTensorMemory(shape, shared, source, store, 40);
    expect(firstDifference(words, expected)).toBe(null);
    const touched = new Set<number>();
    for (const r of touchedByTensorCopy(shape, 40))
      for (let lane = r.firstLane; lane < r.firstLane + r.lanes; lane++)
        for (let i = 0; i < r.columns; i++) touched.add(lane * 512 + r.firstColumn + i);
    const isAsSaid = words.every((value, i) => (value !== 0xdeadbeef) === touched.has(i));
    expect(isAsSaid).toBe(true);
  });

  it('is checked', () => {
    const shared = createSharedMemory();
    const source = denseDescriptor('none', 'k', 0, rowBytes, 1);
    const check = (address: number, change: object = {}): string | null =>
      checkTensorCopy(shape, shared, { ...source, ...change }, address)?.kind ?? null;
    expect(check(512 - rowBytes / 4)).toBe(null);
    expect(check(513 - rowBytes / 4)).toBe('tensor-allocation');
    expect(check(tensorAddress(64, 0))).toBe('misaligned');
    expect(check(0, { major: 'mn' })).toBe('instruction-shape');
    expect(check(0, { address: shared.limitBytes })).toBe('shared-overflow');
    const { store } = createTensorMemory();
    expect(() => copyToTensorMemory(shape, shared, source, store, 511)).toThrow('columns 511 to');
  });
});
