import { findArithmetic } from './arithmetic/index.js';
import type { InstructionCounts } from './instruction.js';
import type { AsynchronousOperation, MachineState, WarpState } from './state.js';
import type { TimedUnit, UnitRates } from './unit-rates.js';

const lanesOfWarp = 32;
/** An SM's four parts, of which each serves every fourth warp. */
const partitions = 4;

/** Which units are busy until when, in clocks. */
export interface UnitOccupancy {
  /** The clock at which an operation ends that starts at `from` or when its unit is free. */
  readonly endOf: (operation: AsynchronousOperation) => number;
  readonly occupy: (operation: AsynchronousOperation, until: number) => void;
  /** Runs code on registers from `now` on; the clock at which it ends. */
  readonly runRegisters: (warp: WarpState, now: number, issues: InstructionCounts) => number;
}

/** Clocks that a warp's code keeps each unit of its part of the SM busy. */
function unitClocks(
  rates: UnitRates,
  issues: InstructionCounts,
): Record<'MUFU' | 'FMA' | 'issue', number> {
  const clocks = { MUFU: 0, FMA: 0, issue: 0 };
  for (const [name, count] of Object.entries(issues)) {
    const { unit, laneOperations } = findArithmetic(name);
    const operations = count * laneOperations * lanesOfWarp;
    if (unit === 'mufu') clocks.MUFU += operations / (rates.mufuLanes / partitions);
    else if (unit === 'fma') clocks.FMA += operations / (rates.fmaLanes / partitions);
    clocks.issue += count;
  }
  return clocks;
}

/** Units that are all free at first. */
export function createUnitOccupancy({ rates }: Pick<MachineState, 'rates'>): UnitOccupancy {
  const freeAt = new Map<string, number>();
  const keyOf = ({ unit, warp }: AsynchronousOperation): string =>
    unit === 'tensor memory'
      ? `${warp.cta.rank} ${unit} ${warp.index % partitions}`
      : `${unit === 'tensor core' ? 0 : warp.cta.rank} ${unit}`;
  const isShared = (unit: TimedUnit): boolean => unit !== 'issue';
  return {
    endOf: (operation) => {
      const { unit, cycles, latency, issuedAt, after } = operation;
      let start = issuedAt;
      for (const { doneAt } of after) start = Math.max(start, doneAt);
      if (isShared(unit)) start = Math.max(start, freeAt.get(keyOf(operation)) ?? 0);
      return start + cycles + latency;
    },
    occupy: (operation, until) => {
      if (isShared(operation.unit)) freeAt.set(keyOf(operation), until - operation.latency);
    },
    runRegisters: (warp, now, issues) => {
      let end = now;
      for (const [unit, clocks] of Object.entries(unitClocks(rates, issues))) {
        if (clocks === 0) continue;
        const key = `${warp.cta.rank} ${unit} ${warp.index % partitions}`;
        const until = Math.max(now, freeAt.get(key) ?? 0) + clocks;
        freeAt.set(key, until);
        end = Math.max(end, until);
      }
      return end;
    },
  };
}
