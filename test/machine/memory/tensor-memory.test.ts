import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  columnOf,
  createTensorMemory,
  laneOf,
  tensorAddress,
} from '../../../src/machine/memory/index.js';

describe('addresses of tensor memory', () => {
  it('hold the lane above the column', () => {
    expect(tensorAddress(3, 5)).toBe(0x30005);
    fc.assert(
      fc.property(fc.nat(127), fc.nat(511), (lane, column) => {
        const address = tensorAddress(lane, column);
        expect([laneOf(address), columnOf(address)]).toEqual([lane, column]);
      }),
    );
  });
});

describe('allocation of tensor memory', () => {
  it('gives out disjoint columns, blocks exactly when no gap is wide enough, and frees again', () => {
    const request = fc.oneof(
      fc.record({ do: fc.constant('allocate' as const), shift: fc.integer({ min: 5, max: 9 }) }),
      fc.record({ do: fc.constant('free' as const), which: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(request, { maxLength: 40 }), (requests) => {
        const memory = createTensorMemory();
        const isTaken = new Array<boolean>(512).fill(false);
        let [last, held] = [512, [] as { address: number; columns: number }[]];
        for (const r of requests)
          if (r.do === 'allocate') {
            const columns = Math.min(2 ** r.shift, last);
            const gap = isTaken.findIndex(
              (_, i) => i + columns <= 512 && !isTaken.slice(i, i + columns).includes(true),
            );
            const result = memory.allocate(columns);
            if (result.ok) {
              expect(result.address).toBe(gap);
              isTaken.fill(true, gap, gap + columns);
              held.push({ address: gap, columns });
              last = columns;
            } else {
              expect(result.isBlocked).toBe(true);
              expect(gap).toBe(-1);
            }
          } else if (held.length > 0) {
            const block = held[r.which % held.length];
            expect(memory.deallocate(block.address, block.columns)).toEqual({ ok: true });
            isTaken.fill(false, block.address, block.address + block.columns);
            held = held.filter((other) => other !== block);
          }
        const byColumn = [...held].sort((one, other) => one.address - other.address);
        expect(memory.blocks()).toEqual(byColumn);
        for (const { address, columns } of held)
          expect(memory.isAllocated(address, columns)).toBe(true);
      }),
    );
  });

  it.each([0, 16, 31, 33, 48, 96, 1024, 32.5, -32, NaN])('refuses %d columns', (columns) => {
    const result = createTensorMemory().allocate(columns);
    expect(result).toMatchObject({ ok: false, isBlocked: false });
  });

  it('refuses a larger allocation than the one before', () => {
    const memory = createTensorMemory();
    expect(memory.allocate(64).ok).toBe(true);
    expect(memory.allocate(64).ok).toBe(true);
    expect(memory.allocate(128)).toMatchObject({ ok: false, isBlocked: false });
    expect(memory.allocate(32)).toEqual({ ok: true, address: 128 });
  });

  it('refuses to allocate without the permit, and still frees', () => {
    const memory = createTensorMemory();
    memory.allocate(512);
    memory.relinquishPermit();
    expect(memory.allocate(32)).toMatchObject({
      violation: { message: 'tcgen05.alloc of 32 columns after tcgen05.relinquish_alloc_permit' },
    });
    expect(memory.deallocate(0, 512).ok).toBe(true);
    expect(memory.allocate(32).ok).toBe(false);
  });

  it('frees only what was allocated, with its columns, once', () => {
    const memory = createTensorMemory();
    memory.allocate(128);
    memory.allocate(128);
    for (const [address, columns] of [
      [0, 256],
      [0, 64],
      [32, 128],
      [tensorAddress(1, 0), 128],
    ])
      expect(memory.deallocate(address, columns)).toMatchObject({
        ok: false,
        violation: { kind: 'tensor-allocation' },
      });
    expect(memory.deallocate(128, 128).ok).toBe(true);
    expect(memory.deallocate(128, 128).ok).toBe(false);
    expect(memory.blocks()).toEqual([{ address: 0, columns: 128 }]);
    expect(memory.isAllocated(0, 129)).toBe(false);
  });
});
