import { describe, expect, it } from 'vitest';
import type { AsynchronousOperation, WarpState } from '../../../src/machine/state.js';
import { createUnitOccupancy } from '../../../src/machine/measure/timing.js';
import { unitRates, type TimedUnit } from '../../../src/machine/measure/unit-rates.js';

const rates = unitRates.sm_100;

function warpOf(index: number, rank = 0): WarpState {
  return { index, cta: { rank }, current: null } as unknown as WarpState;
}

/** An operation as far as time goes. */
function operation(
  unit: TimedUnit,
  cycles: number,
  issuedAt: number,
  more: Partial<AsynchronousOperation> = {},
): AsynchronousOperation {
  const warp = warpOf(0);
  return {
    unit,
    cycles,
    issuedAt,
    warp,
    latency: 0,
    after: [],
    time: 0,
    ...more,
  } as unknown as AsynchronousOperation;
}

describe('operations in time', () => {
  it('are executed by a unit in the order of issue, the short behind the long', () => {
    const { reserve } = createUnitOccupancy(rates);
    expect(reserve(operation('tensor core', 512, 0))).toBe(512);
    expect(reserve(operation('tensor core', 64, 10))).toBe(576);
    expect(reserve(operation('tensor core', 64, 1000))).toBe(1064);
  });

  it('do not begin before what they come after is done', () => {
    const { reserve } = createUnitOccupancy(rates);
    const before = operation('TMA', 100, 0, { latency: 600, time: 700 });
    expect(reserve(operation('tensor core', 64, 5, { after: [before] }))).toBe(764);
    // A commit needs no unit.
    expect(reserve(operation('issue', 0, 5, { after: [before] }))).toBe(700);
  });

  it('leave a unit free during their latency', () => {
    const { reserve } = createUnitOccupancy(rates);
    expect(reserve(operation('TMA', 100, 0, { latency: 600 }))).toBe(700);
    expect(reserve(operation('TMA', 100, 0, { latency: 600 }))).toBe(800);
  });

  it('share the tensor core of a pair, but not its other units', () => {
    const { reserve } = createUnitOccupancy(rates);
    const other = { warp: warpOf(0, 1) };
    reserve(operation('tensor core', 64, 0));
    expect(reserve(operation('tensor core', 64, 0, other))).toBe(128);
    reserve(operation('TMA', 64, 0));
    expect(reserve(operation('TMA', 64, 0, other))).toBe(64);
  });

  it('reach tensor memory by the part of the SM that the warp is in', () => {
    const { reserve } = createUnitOccupancy(rates);
    expect(reserve(operation('tensor memory', 32, 0))).toBe(32);
    expect(reserve(operation('tensor memory', 32, 0, { warp: warpOf(4) }))).toBe(64);
    expect(reserve(operation('tensor memory', 32, 0, { warp: warpOf(5) }))).toBe(32);
  });
});

describe('code on registers in time', () => {
  // 32 lanes on a quarter of 16 lanes: 8 clocks for each warp instruction.
  const exponentials = (count: number) => ({ 'ex2.approx.ftz.f32': count });

  it('takes as long as the busiest of its units', () => {
    const { runRegisters } = createUnitOccupancy(rates);
    expect(runRegisters(warpOf(0), 100, exponentials(128))).toBe(100 + 128 * 8);
    // f32x2 is two operations of each lane; 32 lanes of FMA serve a warp.
    expect(runRegisters(warpOf(1), 0, { 'fma.rn.f32x2': 64, ...exponentials(8) })).toBe(128);
    // What is no arithmetic takes an issue slot.
    expect(runRegisters(warpOf(2), 0, { 'vote.sync.ballot.b32': 3 })).toBe(3);
  });

  it('queues behind code of its part of the SM, of the same CTA', () => {
    const { runRegisters } = createUnitOccupancy(rates);
    runRegisters(warpOf(0), 0, exponentials(128));
    expect(runRegisters(warpOf(4), 0, exponentials(128))).toBe(2048);
    expect(runRegisters(warpOf(5), 0, exponentials(128))).toBe(1024);
    expect(runRegisters(warpOf(0, 1), 0, exponentials(128))).toBe(1024);
  });

  it('takes turns with longer code, whose share of the unit is not lost', () => {
    const { runRegisters } = createUnitOccupancy(rates);
    runRegisters(warpOf(0), 0, exponentials(128));
    expect(runRegisters(warpOf(4), 0, exponentials(1))).toBe(16);
    expect(runRegisters(warpOf(8), 0, exponentials(200))).toBe(1024 + 8 + 1600);
  });

  it('tells the trace when a unit works, without overlap', () => {
    const busy: [number, number][] = [];
    const { runRegisters } = createUnitOccupancy(rates, ({ track, start, end }) => {
      if (track === 'MUFU') busy.push([start, end]);
    });
    runRegisters(warpOf(0), 0, exponentials(16));
    runRegisters(warpOf(4), 0, exponentials(1));
    expect(busy).toEqual([
      [0, 128],
      [128, 136],
    ]);
  });
});
