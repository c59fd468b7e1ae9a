import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSharedMemory, sharedMemoryLimits } from '../../../src/machine/memory/index.js';
import { RequestError } from '../../../src/request-error.js';

describe('shared memory', () => {
  it('has 227 KB on every architecture by default', () => {
    for (const limit of Object.values(sharedMemoryLimits)) expect(limit).toBe(227 * 1024);
    expect(createSharedMemory().store.bytes.length).toBe(227 * 1024);
  });

  it('shows one little-endian memory as bytes, halves and words', () => {
    const { store, halves } = createSharedMemory(128);
    const { bytes, words } = store;
    words[3] = 0x04030201;
    expect([...bytes.subarray(12, 16)]).toEqual([1, 2, 3, 4]);
    expect([...halves.subarray(6, 8)]).toEqual([0x0201, 0x0403]);
  });

  it('allocates aligned regions that do not overlap, until one does not fit', () => {
    const sizes = fc.record({ bytes: fc.integer({ min: 1, max: 900 }), shift: fc.nat(10) });
    fc.assert(
      fc.property(fc.array(sizes, { maxLength: 12 }), (requests) => {
        const shared = createSharedMemory(4096);
        requests.forEach(({ bytes, shift }, i) => {
          const before = shared.regions.length;
          const result = shared.allocate(`region ${i}`, bytes, 2 ** shift);
          const last = shared.regions.at(-1);
          if (result.ok)
            expect(last).toEqual({ name: `region ${i}`, address: result.address, bytes });
          else {
            expect(result.violation.kind).toBe('shared-overflow');
            expect(shared.regions.length).toBe(before);
          }
          if (result.ok) expect(result.address % 2 ** shift).toBe(0);
        });
        const owners = new Array<string | null>(4096).fill(null);
        for (const { name, address, bytes } of shared.regions) {
          expect(address + bytes).toBeLessThanOrEqual(4096);
          expect(owners.slice(address, address + bytes).every((owner) => owner === null)).toBe(
            true,
          );
          owners.fill(name, address, address + bytes);
        }
        for (const address of [0, 1, 100, 1023, 1024, 2500, 4095])
          expect(shared.regionAt(address)).toBe(owners[address]);
      }),
    );
  });

  it('fills to the last byte and not beyond', () => {
    const shared = createSharedMemory(1024);
    expect(shared.allocate('a', 1000, 8)).toEqual({ ok: true, address: 0 });
    expect(shared.allocate('b', 25, 8).ok).toBe(false);
    expect(shared.allocate('b', 24, 8)).toEqual({ ok: true, address: 1000 });
    expect(shared.allocate('c', 1, 1)).toMatchObject({
      ok: false,
      violation: {
        message: 'c of 1 bytes would end at byte 1025 of shared memory, which has 1024',
      },
    });
  });

  it('refuses requests that make no sense', () => {
    const shared = createSharedMemory();
    shared.allocate('a', 16, 16);
    expect(() => shared.allocate('a', 16, 16)).toThrow(RequestError);
    expect(() => shared.allocate('b', 0, 16)).toThrow('pass a positive integer');
    expect(() => shared.allocate('b', 16, 12)).toThrow('pass a power of two');
    expect(() => createSharedMemory(100)).toThrow('pass a positive multiple of 128');
  });
});
