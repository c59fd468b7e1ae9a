import { describe, expect, it } from 'vitest';
import { runLaneByLane } from '../../../src/ptx/compile/index.js';
import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';
import { constant, operation } from './warp-memory.js';

const add: LaneInstruction = {
  name: 'add.u32',
  destinations: [32],
  sources: [32, 32],
  evaluate: (a, b) => (Number(a) + Number(b)) >>> 0,
  emit: null,
  meaning: 'is',
  unit: 'alu',
  laneOperations: 1,
  evidence: 'isa',
  source: 'none',
};

const registers = 64;

function memoryOf(bytes: number): DataView {
  const view = new DataView(new ArrayBuffer(bytes));
  for (let at = 0; at < bytes; at += 4) view.setUint32(at, at, true);
  return view;
}

describe('an operation lane by lane', () => {
  it('takes words of lanes 4 bytes apart, and constants', () => {
    const view = memoryOf(1024);
    const [d, a] = [0, 128].map((offset) => ({ offset, width: 32 }) as const);
    runLaneByLane(view, operation(add, [d], [a, constant(7, 32)]), registers, -1);
    for (let lane = 0; lane < 32; lane++)
      expect(view.getUint32(registers + 4 * lane, true)).toBe(registers + 128 + 4 * lane + 7);
  });

  it('leaves lanes that are not active, or that the guard leaves out', () => {
    const view = memoryOf(1024);
    const slot = { offset: 0, width: 32 } as const;
    const predicate = { offset: 128, width: 'pred' } as const;
    for (let lane = 0; lane < 32; lane++)
      view.setUint32(registers + 128 + 4 * lane, lane % 2 === 0 ? 0xffffffff : 0, true);
    const one = operation(add, [slot], [slot, constant(1, 32)], {
      slot: predicate,
      isNegated: true,
    });
    runLaneByLane(view, one, registers, 0xff);
    for (let lane = 0; lane < 32; lane++)
      expect(view.getUint32(registers + 4 * lane, true)).toBe(
        registers + 4 * lane + (lane < 8 && lane % 2 === 1 ? 1 : 0),
      );
  });

  it('reads the low bits of a wider register and extends into it with zeros', () => {
    const view = memoryOf(1024);
    const wide = { offset: 0, width: 64 } as const;
    const high = { offset: 256, width: 128 } as const;
    const lane = 5;
    view.setBigUint64(registers + 256 + 8 * lane, 0xfffffffff0000001n, true);
    runLaneByLane(view, operation(add, [wide], [high, high]), registers, 1 << lane);
    expect(view.getBigUint64(registers + 8 * lane, true)).toBe(0xe0000002n);
    const copy: LaneInstruction = {
      ...add,
      destinations: [128],
      sources: [128],
      evaluate: (a) => BigInt(a) + (1n << 64n),
    };
    view.setBigUint64(registers + 256 + 256 + 8 * lane, 9n, true);
    runLaneByLane(view, operation(copy, [high], [high]), registers, 1 << lane);
    expect(view.getBigUint64(registers + 256 + 256 + 8 * lane, true)).toBe(10n);
  });

  it('takes a predicate as 0 or 1 and stores all ones for true', () => {
    const view = memoryOf(1024);
    const predicate = { offset: 128, width: 'pred' } as const;
    const not: LaneInstruction = {
      ...add,
      destinations: ['pred'],
      sources: ['pred'],
      evaluate: (a) => 1 - Number(a),
    };
    view.setUint32(registers + 128, 0, true);
    view.setUint32(registers + 132, 0xffffffff, true);
    runLaneByLane(view, operation(not, [predicate], [predicate]), registers, 3);
    expect(view.getUint32(registers + 128, true)).toBe(0xffffffff);
    expect(view.getUint32(registers + 132, true)).toBe(0);
  });
});
