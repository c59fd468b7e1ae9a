import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LaneInstruction, RegisterWidth } from '../../../src/ptx/instructions/index.js';
import type { LaneOperation, Slot, Source } from '../../../src/ptx/program/index.js';
import { scaled } from '../../setup/effort.js';
import { knownRows } from './known-rows.js';
import {
  compareWithDefinition,
  compilerWithMemory,
  constant,
  createRandom,
  drawWord,
  fill,
  operation,
  slotsOf,
} from './warp-memory.js';

/** Few registers, so that most operations read what others wrote; and one of another width for each. */
const layout = slotsOf([32, 32, 32, 32, 64, 64, 64, 16, 16, 128, 128, 'pred', 'pred', 'pred']);
const registerBytes = 64 * 1024;

/** What no emitter knows, so that it runs lane by lane between two stretches. */
const unknown: LaneInstruction = {
  name: 'no such instruction',
  destinations: [32, 'pred'],
  sources: [32, 64],
  evaluate: (a, b) => [Number(BigInt.asUintN(32, BigInt(a) * 3n + BigInt(b))), Number(a) & 1],
  emit: null,
  meaning: 'is',
  unit: 'alu',
  laneOperations: 1,
  evidence: 'isa',
  source: 'none',
};

const rows = [...knownRows, ...Array.from({ length: 20 }, () => unknown)];

function fits(slot: Slot, width: RegisterWidth): boolean {
  if (slot.width === 'pred' || width === 'pred') return slot.width === width;
  return slot.width >= width;
}

/** An operation that `random` chooses. */
function drawOperation(random: () => number): LaneOperation {
  const row = rows[random() % rows.length];
  const pick = (width: RegisterWidth): Slot => {
    const fitting = layout.slots.filter((slot) => fits(slot, width));
    return fitting[random() % fitting.length];
  };
  const source = (width: RegisterWidth): Source =>
    random() % 5 === 0
      ? constant((BigInt(drawWord(random)) << 32n) | BigInt(drawWord(random)), width)
      : pick(width);
  const destinations = row.destinations.map((width) => pick(width));
  const distinct = destinations.map((slot, i) => (destinations.indexOf(slot) === i ? slot : null));
  const guard = random() % 3 === 0 ? { slot: pick('pred'), isNegated: random() % 2 === 0 } : null;
  return operation(row, distinct, row.sources.map(source), guard);
}

describe('a stretch of operations in WebAssembly', () => {
  it('equals its operations one by one, lane by lane', () => {
    const { memory, compiler } = compilerWithMemory(registerBytes);
    fc.assert(
      fc.property(
        fc.array(fc.integer(), { minLength: 1, maxLength: 40 }),
        fc.oneof(fc.constant(-1), fc.integer()),
        fc.integer(),
        (seeds, lanes, filling) => {
          const operations = seeds.map((seed) => drawOperation(createRandom(seed)));
          fill(new DataView(memory.buffer), 0, layout.slots, createRandom(filling));
          const run = compiler.compile(operations);
          expect(compareWithDefinition(memory, run, operations, layout, lanes)).toBeNull();
        },
      ),
      { numRuns: scaled(150) },
    );
  });

  it('runs where the registers of a warp begin, and leaves those of others', () => {
    const { memory, compiler } = compilerWithMemory(registerBytes);
    const random = createRandom(1);
    const operations = Array.from({ length: 12 }, () => drawOperation(random));
    const run = compiler.compile(operations);
    const view = new DataView(memory.buffer);
    fill(view, 0, layout.slots, createRandom(2));
    const registers = new Uint8Array(memory.buffer, 0, layout.bytes).slice();
    const bytes = new Uint8Array(memory.buffer, 0, registerBytes);
    bytes.fill(0x5a);
    const base = 3 * layout.bytes;
    bytes.set(registers, base);
    run(base, 0x0ff00f3c);
    const after = bytes.slice(base, base + layout.bytes);
    bytes.set(registers, base);
    expect(bytes.every((byte, i) => byte === 0x5a || (i >= base && i < base + layout.bytes))).toBe(
      true,
    );
    bytes.set(registers, 0);
    run(0, 0x0ff00f3c);
    expect(Buffer.compare(after, bytes.subarray(0, layout.bytes))).toBe(0);
  });

  it('counts what runs lane by lane', () => {
    const { compiler } = compilerWithMemory(registerBytes);
    const [register, , , , wide] = layout.slots;
    const one = operation(unknown, [register, null], [register, wide]);
    compiler.compileAll([[one, one], [], [one]]);
    expect(compiler.statistics()).toEqual({
      operations: 3,
      laneByLane: new Map([['no such instruction', 3]]),
    });
  });
});
