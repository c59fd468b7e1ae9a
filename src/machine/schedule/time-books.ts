import { recordOf } from '../instructions/index.js';
import { type Instruction, siteOf } from '../isa/index.js';
import { count } from '../measure/index.js';
import type { AsynchronousOperation, MachineState, WarpState } from '../state.js';

/** Accounts of a run's time: counters of waits and of units, the trace, and the last clock. */
export interface TimeBooks {
  /**
   * A warp has executed an instruction.
   * @param began the time at which it would have begun without waiting
   */
  readonly warpDone: (warp: WarpState, instruction: Instruction, began: number) => void;
  /** An operation has been performed. */
  readonly operationDone: (operation: AsynchronousOperation) => void;
  /** The end of the steps executed so far; in clocks if the run is timed, else in steps. */
  readonly end: () => number;
}

/** Books for a run; in one that is not timed, each step takes one unit of time. */
export function createTimeBooks(machine: MachineState, isTimed: boolean): TimeBooks {
  const { trace } = machine;
  let last = 0;
  return {
    end: () => last,
    warpDone: (warp, instruction, began) => {
      const { now } = machine;
      const { counters, rank } = warp.cta;
      const { isWait } = recordOf(instruction);
      if (isWait) {
        const site = siteOf(instruction);
        count(counters.waits, site, 1);
        if (now > began) {
          count(counters.blockedWaits, site, 1);
          if (isTimed) count(counters.waitClocks, site, now - began);
        }
      }
      const end = isTimed ? Math.max(warp.readyAt, now + 1) : now + 1;
      trace?.({
        cta: rank,
        track: warp.index,
        warp: warp.index,
        name: siteOf(instruction),
        instruction,
        start: isWait ? began : now,
        end,
        isWait,
        issuedAt: null,
      });
      warp.readyAt = end;
      last = Math.max(last, end);
    },
    operationDone: ({ warp, unit, cycles, site, instruction, issuedAt }) => {
      const { now } = machine;
      if (isTimed) count(warp.cta.counters.unitClocks, unit, cycles);
      trace?.({
        cta: warp.cta.rank,
        track: unit,
        warp: warp.index,
        instruction,
        name: site,
        isWait: false,
        issuedAt,
        ...(isTimed ? { start: now - cycles, end: now } : { start: now, end: now + 1 }),
      });
      last = Math.max(last, now);
    },
  };
}
