import {
  arithmeticInstructions,
  siteOf,
  warpLanes,
  type Instruction,
  type InstructionCounts,
} from '../isa/index.js';
import { partitions, type TimedUnit, type UnitRates } from './unit-rates.js';

/** One event of a trace; times are clocks of a timed schedule, else steps. */
export interface TraceEvent {
  readonly cta: number;
  /** A warp's index, or the unit that worked. */
  readonly track: number | TimedUnit;
  /** The warp that executed the instruction, or issued the operation. */
  readonly warp: number;
  readonly name: string;
  readonly instruction: Instruction | null;
  /** Start and end. For an operation with a latency they bound the last part of its duration, when its bytes arrive. */
  readonly start: number;
  readonly end: number;
  /** Whether the warp waited. */
  readonly isWait: boolean;
  /** The time at which an operation was issued; null for everything else. */
  readonly issuedAt: number | null;
}

/** A warp, as timing sees it. */
interface TimedWarp {
  readonly index: number;
  readonly cta: { readonly rank: number };
  /** The instruction that it executes. */
  readonly current: Instruction | null;
}

/** An asynchronous operation, as timing sees it. */
interface TimedOperation {
  readonly warp: TimedWarp;
  readonly unit: TimedUnit;
  /** Clocks of the unit that it takes, and clocks until its result is available. */
  readonly cycles: number;
  readonly latency: number;
  readonly issuedAt: number;
  /** Operations that the hardware performs before this one, and when they are performed. */
  readonly after: readonly { readonly time: number }[];
}

/** The clocks until which each unit is busy. */
export interface UnitOccupancy {
  /**
   * The clock at which an operation that is issued now will be done: units execute in the order of
   * issue, and no operation before those that it comes after.
   */
  readonly reserve: (operation: TimedOperation) => number;
  /** Runs code on registers from `now` on; returns the clock at which it ends. */
  readonly runRegisters: (warp: TimedWarp, now: number, issues: InstructionCounts) => number;
}

const laneOperationsOf: ReadonlyMap<string, { readonly unit: string; readonly perWarp: number }> =
  new Map(
    arithmeticInstructions.map(({ name, unit, laneOperations }) => [
      name,
      { unit, perWarp: laneOperations * warpLanes },
    ]),
  );

/** Clocks that a warp's code keeps each unit of its part of the SM busy. */
function unitClocks(
  rates: UnitRates,
  issues: InstructionCounts,
): Record<'MUFU' | 'FMA' | 'issue', number> {
  const clocks = { MUFU: 0, FMA: 0, issue: 0 };
  for (const [name, count] of Object.entries(issues)) {
    // Instructions that are no arithmetic, a vote for instance, take their issue slot.
    const { unit, perWarp } = laneOperationsOf.get(name) ?? { unit: 'issue', perWarp: 0 };
    if (unit === 'mufu') clocks.MUFU += (count * perWarp) / (rates.mufuLanes / partitions);
    else if (unit === 'fma') clocks.FMA += (count * perWarp) / (rates.fmaLanes / partitions);
    clocks.issue += count;
  }
  return clocks;
}

/**
 * Units that are all free at first.
 *
 * @param trace called when code on registers keeps a unit busy
 */
export function createUnitOccupancy(
  rates: UnitRates,
  trace: (event: TraceEvent) => void = () => undefined,
): UnitOccupancy {
  const freeAt = new Map<string, number>();
  const keyOf = ({ unit, warp }: TimedOperation): string =>
    unit === 'tensor memory'
      ? `${warp.cta.rank} ${unit} ${warp.index % partitions}`
      : `${unit === 'tensor core' ? 0 : warp.cta.rank} ${unit}`;
  const isShared = (unit: TimedUnit): boolean => unit !== 'issue';
  return {
    reserve: (operation) => {
      const { unit, cycles, latency, issuedAt, after } = operation;
      let start = issuedAt;
      for (const { time } of after) start = Math.max(start, time);
      if (isShared(unit)) {
        const key = keyOf(operation);
        start = Math.max(start, freeAt.get(key) ?? 0);
        freeAt.set(key, start + cycles);
      }
      return start + cycles + latency;
    },
    runRegisters: (warp, now, issues) => {
      let end = now;
      for (const [unit, clocks] of Object.entries(unitClocks(rates, issues))) {
        if (clocks === 0) continue;
        const key = `${warp.cta.rank} ${unit} ${warp.index % partitions}`;
        const queue = Math.max((freeAt.get(key) ?? 0) - now, 0);
        const until = now + queue + clocks;
        freeAt.set(key, until);
        // Warps take turns: a short piece of code has half of the unit, however long the others are.
        end = Math.max(end, now + clocks + Math.min(queue, clocks));
        if (unit !== 'issue')
          trace({
            cta: warp.cta.rank,
            track: unit as TimedUnit,
            warp: warp.index,
            name: siteOf(warp.current),
            instruction: warp.current,
            isWait: false,
            start: until - clocks,
            end: until,
            issuedAt: null,
          });
      }
      return end;
    },
  };
}
