import { describe, expect, it } from 'vitest';
import {
  type ByteStore,
  byteStoreOf,
  checkFragment,
  createByteStore,
  createTensorMemory,
  fragmentRegisters,
  loadFragment,
  storeFragment,
  tensorAddress,
  tensorMemoryShapes,
  touchedByFragment,
} from '../../../src/machine/memory/index.js';
import type { FragmentTransfer, TensorMemoryShape } from '../../../src/machine/memory/index.js';
import { RequestError } from '../../../src/request-error.js';
import { wordSource } from '../../hardware/tensor-core/random-patterns.js';
import { offsetOf } from './canonical-layout.js';
import type { Layout } from './canonical-layout.js';
import { firstDifference } from './first-difference.js';

/** The thread and bit layouts of CuTe's copy traits, of r repeats: to bits, lanes one after the other. */
interface Traits {
  readonly lanes: number;
  readonly bitsPerLane: (r: number) => number;
  readonly thread: (r: number) => Layout;
  readonly bit: (r: number) => Layout;
}

const traits: Readonly<Record<TensorMemoryShape, Traits>> = {
  '32x32b': {
    lanes: 32,
    bitsPerLane: (r) => 32 * r,
    thread: (r) => ({ shape: [32], stride: [32 * r] }),
    bit: (r) => ({ shape: [32 * r], stride: [1] }),
  },
  '16x64b': {
    lanes: 16,
    bitsPerLane: (r) => 64 * r,
    thread: (r) => ({ shape: [2, 2, 8], stride: [512 * r, 32, 64 * r] }),
    bit: (r) => ({ shape: [32, r], stride: [1, 64] }),
  },
  '16x128b': {
    lanes: 16,
    bitsPerLane: (r) => 128 * r,
    thread: (r) => ({ shape: [4, 8], stride: [32, 128 * r] }),
    bit: (r) => ({ shape: [32, 2, r], stride: [1, 1024 * r, 128] }),
  },
  '16x256b': {
    lanes: 16,
    bitsPerLane: (r) => 256 * r,
    thread: (r) => ({ shape: [4, 8], stride: [64, 256 * r] }),
    bit: (r) => ({ shape: [64, 2, r], stride: [1, 2048 * r, 256] }),
  },
  '16x32bx2': {
    lanes: 16,
    bitsPerLane: (r) => 64 * r,
    thread: (r) => ({ shape: [16, 2], stride: [64 * r, 32 * r] }),
    bit: (r) => ({ shape: [32 * r], stride: [1] }),
  },
};

const shapes = Object.keys(traits) as TensorMemoryShape[];
const transfers: FragmentTransfer[] = shapes.flatMap((shape) => {
  const list: FragmentTransfer[] = [];
  for (let repeat = 1; repeat <= tensorMemoryShapes[shape].mostRepeats; repeat *= 2)
    list.push({ shape, repeat }, { shape, repeat, isPacked: true });
  return list;
});
const legal = transfers.filter((t) => checkFragment(t, 0, 0) === null);

function nameOf({ shape, repeat, isPacked }: FragmentTransfer): string {
  return `.${shape}.x${repeat}${isPacked ? ' packed' : ''}`;
}

/** A tensor memory whose words are all different. */
function numberedMemory(): ByteStore {
  const { store } = createTensorMemory();
  store.words.forEach((_, i) => (store.words[i] = 0x10000 * (i + 1) + (i % 0xfff1)));
  return store;
}

function randomFragment(transfer: FragmentTransfer, seed: number): ByteStore {
  return byteStoreOf(new Uint32Array(32 * fragmentRegisters(transfer)).map(wordSource(seed)));
}

/** Lanes and columns of a transfer's rectangles as a set of word indices. */
function touchedWords(transfer: FragmentTransfer, address: number): Set<number> {
  const words = new Set<number>();
  for (const { firstLane, lanes, firstColumn, columns } of touchedByFragment(transfer, address))
    for (let lane = firstLane; lane < firstLane + lanes; lane++)
      for (let column = firstColumn; column < firstColumn + columns; column++)
        words.add(lane * 512 + column);
  return words;
}

describe('shapes of tcgen05.ld and tcgen05.st', () => {
  it('have at most 128 registers, and as many as their words', () => {
    for (const transfer of transfers) expect(fragmentRegisters(transfer)).toBeLessThanOrEqual(128);
    for (const shape of shapes) {
      const { lanes, columns, registers, mostRepeats, isSplit } = tensorMemoryShapes[shape];
      expect(32 * registers).toBe(lanes * columns * (isSplit ? 2 : 1));
      expect(registers * mostRepeats).toBe(128);
    }
  });

  it.each(transfers.filter((t) => !t.isPacked).map((t) => [nameOf(t), t] as const))(
    '%s loads what the CuTe layouts say',
    (_, transfer) => {
      const { shape, repeat } = transfer;
      const { thread, bit, bitsPerLane } = traits[shape];
      const memory = numberedMemory();
      const registers = fragmentRegisters(transfer);
      const fragment = createByteStore(4 * 32 * registers);
      loadFragment(memory, transfer, 0, fragment);
      const expected = fragment.words.map((_, i) => {
        const start = offsetOf(thread(repeat), Math.floor(i / registers));
        const bits = start + offsetOf(bit(repeat), 32 * (i % registers));
        return memory.words[
          Math.floor(bits / bitsPerLane(repeat)) * 512 + (bits % bitsPerLane(repeat)) / 32
        ];
      });
      expect(firstDifference(fragment.words, expected)).toBe(null);
    },
  );

  it.each(legal.map((t) => [nameOf(t), t] as const))(
    '%s stores what it loads, and touches what it says',
    (_, transfer) => {
      const { lanes } = tensorMemoryShapes[transfer.shape];
      const columns = touchedByFragment(transfer, 0).reduce(
        (most, r) => Math.max(most, r.firstColumn + r.columns),
        0,
      );
      const address = tensorAddress(lanes === 16 ? 80 : 64, 512 - columns);
      const memory = numberedMemory();
      const { words } = memory;
      const before = words.slice();
      const fragment = randomFragment(transfer, 7);
      storeFragment(memory, transfer, address, fragment);
      const loaded = createByteStore(fragment.bytes.length);
      loadFragment(memory, transfer, address, loaded);
      expect(firstDifference(loaded.words, fragment.words)).toBe(null);
      const touched = touchedWords(transfer, address);
      const changed = [...words.keys()].filter((i) => words[i] !== before[i]);
      expect(changed.every((i) => touched.has(i))).toBe(true);
      expect(touched.size).toBe(fragment.words.length * (transfer.isPacked ? 2 : 1));
      // A load after a store of other words gives the first ones nowhere.
      storeFragment(memory, transfer, address, randomFragment(transfer, 8));
      loadFragment(memory, transfer, address, loaded);
      const kept = loaded.words.filter((word, i) => word === fragment.words[i]);
      expect(kept.length).toBeLessThan(3);
    },
  );

  it.each(shapes)('.%s packs low halves of adjacent columns', (shape) => {
    const plain = { shape, repeat: 4 };
    const memory = numberedMemory();
    const { words } = memory;
    const wide = createByteStore(128 * fragmentRegisters({ shape, repeat: 8 }));
    const packed = createByteStore(128 * fragmentRegisters(plain));
    loadFragment(memory, { ...plain, isPacked: true }, 0, packed);
    loadFragment(memory, { shape, repeat: 8 }, 0, wide);
    const halves = [...packed.words]
      .flatMap((word) => [word & 0xffff, word >>> 16])
      .sort((a, b) => a - b);
    expect(halves).toEqual([...wide.words].map((word) => word & 0xffff).sort((a, b) => a - b));
    for (const word of packed.words) {
      const first = words.findIndex((w) => (w & 0xffff) === (word & 0xffff));
      expect(words[first + 1] & 0xffff).toBe(word >>> 16);
    }
  });

  it('puts the upper half of .16x32bx2 at its offset', () => {
    const memory = numberedMemory();
    const fragment = createByteStore(256);
    loadFragment(
      memory,
      { shape: '16x32bx2', repeat: 2, halfOffset: 100 },
      tensorAddress(16, 8),
      fragment,
    );
    const at = (lane: number, column: number): number => memory.words[lane * 512 + column];
    expect([...fragment.words.subarray(2, 4)]).toEqual([at(17, 8), at(17, 9)]);
    expect([...fragment.words.subarray(34, 36)]).toEqual([at(17, 108), at(17, 109)]);
  });
});

describe('checks of tcgen05.ld and tcgen05.st', () => {
  const plain: FragmentTransfer = { shape: '32x32b', repeat: 32 };

  it('lets each warp of a warpgroup reach its own 32 lanes only', () => {
    for (let warp = 0; warp < 16; warp++)
      for (let lane = 0; lane < 128; lane += 16)
        for (const shape of ['32x32b', '16x64b'] as const) {
          const violation = checkFragment({ shape, repeat: 1 }, tensorAddress(lane, 0), warp);
          const isOwn = Math.floor(lane / 32) === warp % 4;
          const isAligned = shape === '16x64b' || lane % 32 === 0;
          expect(violation?.kind ?? null).toBe(
            !isOwn ? 'lane-window' : isAligned ? null : 'misaligned',
          );
        }
  });

  it('finds repeats that do not exist and columns beyond the last', () => {
    expect(checkFragment({ shape: '16x256b', repeat: 64 }, 0, 0)?.message).toBe(
      '.16x256b.x64 does not exist; 16x256b has the powers of two from .x1 to .x32',
    );
    expect(checkFragment({ ...plain, repeat: 3 }, 0, 0)?.kind).toBe('instruction-shape');
    expect(checkFragment({ ...plain, halfOffset: 8 }, 0, 0)?.kind).toBe('instruction-shape');
    expect(checkFragment(plain, 480, 0)).toBe(null);
    expect(checkFragment(plain, 481, 0)?.kind).toBe('tensor-allocation');
    const split: FragmentTransfer = { shape: '16x32bx2', repeat: 8, halfOffset: 505 };
    expect(checkFragment(split, 0, 0)?.kind).toBe('tensor-allocation');
  });

  it('throws for fragments of another size and for columns beyond the last', () => {
    const { store } = createTensorMemory();
    expect(() => loadFragment(store, plain, 0, createByteStore(2048))).toThrow('pass 1024');
    expect(() => storeFragment(store, plain, 500, createByteStore(4096))).toThrow(RequestError);
  });
});
