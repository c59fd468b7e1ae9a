import type { TensorHistoryEntry } from './execute/tcgen05-mma.js';
import type { CtaCounters } from './counters.js';
import type { FindingAccess, FindingCollector, FindingKind } from './finding.js';
import type { Fragment, Instruction, WarpProgram } from './instruction.js';
import type { Mbarrier } from './mbarrier.js';
import type { MemoryViolation, SharedMemory, TensorMemory } from './memory/index.js';
import type { MemoryModel } from './memory-model.js';
import type { NamedBarrier } from './named-barrier.js';
import type { OperationOrder, OrderTracker, WarpOrder } from './order-tracker.js';
import type { MmaUnits } from './mma-units.js';
import type { UnitOccupancy } from './timing.js';
import type { TimedUnit, UnitRates } from './unit-rates.js';

/** One CTA of the cluster that runs. */
export interface CtaState {
  readonly rank: number;
  readonly shared: SharedMemory;
  readonly tensor: TensorMemory;
  readonly mbarriers: Map<number, Mbarrier>;
  readonly namedBarriers: Map<number, NamedBarrier>;
  readonly warps: WarpState[];
  readonly counters: CtaCounters;
}

/** What a warp waits for in the middle of an instruction. */
export interface Continuation {
  readonly isReady: () => boolean;
  readonly resume: () => void;
  /** What it waits for, for a message about a deadlock. */
  readonly waitsFor: () => string;
  /** The clock from which on it is ready, once it is. */
  readonly readyTime: () => number;
}

/** One warp. */
export interface WarpState {
  readonly cta: CtaState;
  readonly index: number;
  /** `CTA 0 warp 12`, and what the program calls it. */
  readonly name: string;
  readonly program: WarpProgram;
  /** The instruction that it executes next; null at its end. */
  current: Instruction | null;
  continuation: Continuation | null;
  /** Its tcgen05.ld and tcgen05.st that are not known to be complete. */
  loads: AsynchronousOperation[];
  stores: AsynchronousOperation[];
  /** Its tcgen05.mma and tcgen05.cp that have not been performed. */
  tensorOperations: AsynchronousOperation[];
  /** The last of them by accumulator and operand, for the order of later ones. */
  readonly tensorHistory: Map<string, TensorHistoryEntry>;
  /** Its last tcgen05.commit. */
  lastCommit: AsynchronousOperation | null;
  /** The generation of the cluster's barrier that it has arrived for and not waited for. */
  clusterGeneration: number | null;
  /** Its bulk stores since the last commit_group, and the groups before. */
  openBulkGroup: AsynchronousOperation[];
  bulkGroups: AsynchronousOperation[][];
  /** From when on it may execute the next instruction, in clocks. */
  readyAt: number;
  readonly order: WarpOrder | null;
  readonly chosenAs: 'warp';
  /** When it may execute its next instruction, in clocks of a timed schedule. */
  time: number;
}

/** The kinds of operations that complete by themselves. */
export type OperationKind =
  'mma' | 'copy' | 'commit' | 'tensor-load' | 'tensor-store' | 'bulk-load' | 'bulk-store';

/** An operation that a warp has issued and that is performed when the scheduler chooses. */
export interface AsynchronousOperation {
  readonly kind: OperationKind;
  readonly warp: WarpState;
  readonly name: string;
  readonly site: string;
  readonly instruction: Instruction | null;
  /** Operations that the hardware performs before this one. */
  readonly after: readonly AsynchronousOperation[];
  readonly perform: () => void;
  /** The registers that a tcgen05.ld fills. */
  readonly fragment: Fragment | null;
  readonly order: OperationOrder | null;
  readonly unit: TimedUnit;
  /** Clocks of the unit that it takes, and clocks until its result is there. */
  readonly cycles: number;
  readonly latency: number;
  readonly issuedAt: number;
  isDone: boolean;
  doneAt: number;
  readonly chosenAs: 'operation';
  /** When it is performed, in clocks of a timed schedule: known from its issue on. */
  time: number;
}

/** What a scheduler chooses among: a warp's next instruction, or an operation to be performed. */
export type Step = WarpState | AsynchronousOperation;

/** One thing that happened, for a trace; times are clocks of a timed schedule, else steps. */
export interface TraceEvent {
  readonly cta: number;
  /** A warp's index, or the unit that worked. */
  readonly track: number | TimedUnit;
  /** The warp that executed the instruction, or issued the operation. */
  readonly warp: number;
  readonly name: string;
  readonly instruction: Instruction | null;
  /** Of an operation with a latency, the end of the time that it takes: when its bytes arrive. */
  readonly start: number;
  readonly end: number;
  /** Whether the warp waited. */
  readonly isWait: boolean;
  /** The time at which an operation was issued; null for everything else. */
  readonly issuedAt: number | null;
}

/** The machine while a cluster runs. */
export interface MachineState {
  readonly ctas: readonly CtaState[];
  readonly model: MemoryModel;
  readonly findings: FindingCollector;
  readonly tracker: OrderTracker | null;
  readonly mmaUnits: MmaUnits;
  readonly rates: UnitRates;
  /** Which units are busy, in a timed schedule. */
  readonly occupancy: UnitOccupancy | null;
  readonly pending: AsynchronousOperation[];
  readonly clusterBarrier: NamedBarrier;
  /** Where the warps of a pair meet that allocate tensor memory. */
  readonly pairAllocation: NamedBarrier;
  readonly trace: ((event: TraceEvent) => void) | null;
  /** Steps executed. */
  step: number;
  /** The clock of the step that is executed. */
  now: number;
}

/** Reports an illegal act of a warp at its current instruction. */
export function report(
  machine: MachineState,
  warp: WarpState,
  kind: FindingKind,
  what: string,
  accesses: readonly FindingAccess[] = [],
): void {
  const site = siteOf(warp.current);
  const place = `${warp.name}, ${site}`;
  machine.findings.add({
    kind,
    message: `${place}: ${what}`,
    cta: warp.cta.rank,
    step: machine.step,
    accesses: accesses.length > 0 ? accesses : [{ who: warp.name, site, step: machine.step }],
  });
}

/** Reports a violation of the rules of a memory; whether there was one. */
export function reportViolation(
  machine: MachineState,
  warp: WarpState,
  violation: MemoryViolation | null,
): boolean {
  if (violation === null) return false;
  report(machine, warp, violation.kind, violation.message);
  return true;
}

/** What an instruction is called: its place in the program, or its name. */
export function siteOf(instruction: Instruction | null): string {
  return instruction === null ? 'the end' : (instruction.site ?? instruction.op);
}

/** Whether all warps of a CTA have ended. */
export function hasExited({ warps }: CtaState): boolean {
  return warps.every(({ current }) => current === null);
}
