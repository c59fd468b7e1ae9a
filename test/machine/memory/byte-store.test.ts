import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  byteStoreOf,
  copyOfBytes,
  createByteStore,
  fillBytes,
  fillHalves,
  hasEqualBytes,
  moveBytes,
} from '../../../src/machine/memory/index.js';

const size = 2048;
const contents = fc.uint8Array({ minLength: size, maxLength: size });
/** Two places and a number of bytes that both have. */
const moves = fc
  .record({ from: fc.nat(size - 1), to: fc.nat(size - 1), unit: fc.constantFrom(1, 4) })
  .map(({ from, to, unit }) => ({ from: from - (from % unit), to: to - (to % unit), unit }))
  .chain(({ from, to, unit }) =>
    fc
      .nat((size - Math.max(from, to)) / unit)
      .map((count) => ({ from, to, count: Math.floor(count) * unit })),
  );

describe('bytes', () => {
  it('are moved one by one, wherever they lie and however many', () => {
    fc.assert(
      fc.property(contents, contents, moves, (source, target, { from, to, count }) => {
        const store = byteStoreOf(target.slice());
        moveBytes(byteStoreOf(source.slice()), from, store, to, count);
        const expected = target.slice();
        for (let i = 0; i < count; i++) expected[to + i] = source[from + i];
        expect(store.bytes).toEqual(expected);
        expect(hasEqualBytes(store, to, byteStoreOf(source.slice()), from, count)).toBe(true);
      }),
    );
  });

  it('of a copy are its own', () => {
    const store = byteStoreOf(Uint8Array.from({ length: 16 }, (_, i) => i));
    const copy = copyOfBytes(store, 3, 5);
    fillBytes(store, 0, 16, 0xff);
    expect([...copy.bytes]).toEqual([3, 4, 5, 6, 7, 0, 0, 0]);
    expect(hasEqualBytes(store, 0, copy, 0, 1)).toBe(false);
  });

  it('are filled as far as is said, and no further', () => {
    const store = createByteStore(12);
    fillBytes(store, 1, 2, 7);
    fillHalves(store, 4, 6, 0x7fff);
    expect([...store.bytes]).toEqual([0, 7, 7, 0, 0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f, 0, 0]);
  });
});
