import {
  siteOf,
  type Fragment,
  type Instruction,
  type FindWarpgroupProduct,
  type MmaUnits,
  type WarpProgram,
} from './isa/index.js';
import type {
  CtaCounters,
  TimedUnit,
  TraceEvent,
  UnitOccupancy,
  UnitRates,
} from './measure/index.js';
import type {
  AllocatedMemory,
  ByteStore,
  LocalMemory,
  MemoryViolation,
  SharedMemory,
  TensorMemory,
} from './memory/index.js';
import type {
  Clock,
  FindingAccess,
  FindingCollector,
  FindingKind,
  LaneOrder,
  Mbarrier,
  MemoryModel,
  NamedBarrier,
  OperationKind,
  OperationOrder,
  OrderedWarp,
  OrderTracker,
  Position,
  WarpOrder,
  DependenceListener,
} from './ordering/index.js';
import type { ValueTracer } from './value-tracer.js';

/** The registers of a CTA: those of one thread of each warp, and those that no warp has. */
export interface RegisterPool {
  readonly ofWarps: number[];
  /** Registers for one thread of each of 32 lanes: one warp gets those that another gives back. */
  free: number;
  /** The last change of each warp as an event, and the number of its changes. */
  readonly changes: ({ readonly count: number; readonly at: Position | null } | null)[];
}

/** An instruction that all warps of a warpgroup have to execute, and the first of them that has come to it. */
export interface GroupStep {
  readonly what: string;
  readonly who: string;
  /** The parts of its warps in the operation that it issues, until they are performed together; null where there is none. */
  parts: AsynchronousOperation[] | null;
}

/** Progress of the warps of a warpgroup through the instructions that all of them have to execute. */
export interface WarpgroupProgress {
  /** Number of such instructions that each of its warps has executed. */
  readonly executed: number[];
  /** Those that some warps have not executed, the earliest first, and the number of earlier ones. */
  readonly open: GroupStep[];
  closed: number;
}

/** One CTA of the cluster that runs. */
export interface CtaState {
  readonly rank: number;
  /** Number of the CTA among those of the grid that have begun. */
  readonly number: number;
  readonly shared: SharedMemory;
  readonly tensor: TensorMemory;
  readonly mbarriers: Map<number, Mbarrier>;
  /** Clocks of the warps that have ended mbarriers, by the mbarriers' offsets. */
  readonly endedMbarriers: Map<number, Clock>;
  readonly namedBarriers: Map<number, NamedBarrier>;
  readonly registers: RegisterPool;
  readonly warpgroups: Map<number, WarpgroupProgress>;
  readonly warps: WarpState[];
  readonly counters: CtaCounters;
}

/** A wait of a warp in the middle of an instruction. */
export interface Continuation {
  readonly isReady: () => boolean;
  /** Goes on; returns the warp's next wait, if there is one. */
  readonly resume: () => Continuation | void;
  /** The thing that it waits for, for a message about a deadlock. */
  readonly waitsFor: () => string;
  /** The clock from which on it is ready, once it is. */
  readonly readyTime: () => number;
}

/** One warp. */
export interface WarpState {
  readonly cta: CtaState;
  readonly index: number;
  /** `CTA 0 warp 12`, and the program's name for it. */
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
  /** Its wgmma.mma_async since the last commit_group, and the groups before. */
  openWarpgroupGroup: AsynchronousOperation[];
  warpgroupGroups: AsynchronousOperation[][];
  /** The arrivals of its last tcgen05.commit, one a CTA. */
  lastCommits: readonly AsynchronousOperation[];
  /** The generation of the cluster's barrier that it has arrived for and not waited for. */
  clusterGeneration: number | null;
  /** Its bulk stores since the last commit_group, and the groups before. */
  openBulkGroup: AsynchronousOperation[];
  bulkGroups: AsynchronousOperation[][];
  /** Its cp.async since the last commit_group, and the groups before. */
  openCopyGroup: AsynchronousOperation[];
  copyGroups: AsynchronousOperation[][];
  /** The local memory of its threads. */
  readonly local: LocalMemory;
  /** The clock from which on it may execute the next instruction. */
  readyAt: number;
  readonly order: WarpOrder | null;
  readonly chosenAs: 'warp';
  /** The time at which it may execute its next instruction, in clocks of a timed schedule. */
  time: number;
}

/** A record of an MMA or a copy of a warp, for the order of later ones. */
export interface TensorHistoryEntry {
  readonly operation: AsynchronousOperation;
  /** Address, shape and kind of the accumulator; null for tcgen05.cp. */
  readonly accumulator: string | null;
  /** Columns of tensor memory that it reads as A. */
  readonly reads: readonly [first: number, end: number] | null;
}

/** An operation that a warp has issued and that is performed when the scheduler chooses. */
export interface AsynchronousOperation {
  readonly kind: OperationKind;
  readonly warp: WarpState;
  readonly name: string;
  readonly site: string;
  readonly instruction: Instruction | null;
  /**
   * Operations that the hardware performs before this one; emptied once it is done, or each would keep all earlier ones
   * alive.
   */
  after: readonly AsynchronousOperation[];
  readonly perform: () => void;
  /** The parts of other warps in the same operation, which are performed with it. */
  partners: readonly AsynchronousOperation[];
  /** The registers that it fills, and those that it reads after it has been issued. */
  readonly fragments: readonly Fragment[];
  readonly order: OperationOrder | null;
  readonly unit: TimedUnit;
  /** The CTAs whose memory or barriers it reaches, and which must not end before. */
  readonly reaches: readonly CtaState[];
  /** Clocks of the unit that it takes, and clocks until its result is available. */
  readonly cycles: number;
  readonly latency: number;
  readonly issuedAt: number;
  isDone: boolean;
  doneAt: number;
  readonly chosenAs: 'operation';
  /** The time at which it is performed, in clocks of a timed schedule: known from its issue on. */
  time: number;
}

/** The choices of a scheduler: a warp's next instruction, or an operation to be performed. */
export type Step = WarpState | AsynchronousOperation;

/** The memory that a launch has besides that of its CTAs. */
export interface LaunchMemory {
  readonly global: AllocatedMemory;
  /** `.const` variables. */
  readonly constant: AllocatedMemory;
  /** The kernel's parameters, laid out as in `.param` from address 0 on. */
  readonly parameters: ByteStore;
  /** Bytes of local memory of each thread. */
  readonly localBytes: number;
}

/** The machine while a cluster runs. */
export interface MachineState {
  readonly memory: LaunchMemory;
  readonly placeOfGlobal: (address: number) => string;
  /**
   * Cancels the launch of a cluster of the grid that has not started; returns its first CTA, or null where none
   * is left.
   */
  readonly cancelLaunch: () => readonly [x: number, y: number, z: number] | null;
  readonly ctas: readonly CtaState[];
  readonly model: MemoryModel;
  readonly findings: FindingCollector;
  readonly tracker: OrderTracker | null;
  /** By the number of a warp in its cluster, once it is needed; null where the order of lanes is not followed. */
  readonly laneOrders: LaneOrder[] | null;
  readonly mmaUnits: MmaUnits;
  readonly warpgroupProducts: FindWarpgroupProduct;
  readonly rates: UnitRates;
  /** The clocks until which units are busy, in a timed schedule. */
  readonly occupancy: UnitOccupancy | null;
  readonly pending: AsynchronousOperation[];
  /** Agents that are diverged lanes of a warp. */
  readonly strands: WarpState[];
  readonly clusterBarrier: NamedBarrier;
  /** Barrier of the warps of a pair that allocate tensor memory. */
  readonly pairAllocation: NamedBarrier;
  readonly trace: ((event: TraceEvent) => void) | null;
  /** Follows what values stand for; null where nobody asks. */
  readonly tracer: ValueTracer | null;
  /** Called for a step whose order with the present one the schedule decides. */
  readonly onDependence: DependenceListener;
  /** Steps executed. */
  step: number;
  /** The clock of the step that is executed. */
  now: number;
  /** Whether the latest store has left every byte as it was; kept where races are looked for. */
  hasRepeated: boolean;
}

/**
 * Reports an illegal act of a warp.
 * @param accesses - the last one is the act; default the warp's current instruction
 */
export function report(
  machine: MachineState,
  warp: OrderedWarp,
  kind: FindingKind,
  what: string,
  accesses: readonly FindingAccess[] = [
    { who: warp.name, site: siteOf(warp.current), step: machine.step },
  ],
): void {
  const { step, findings } = machine;
  const place = `${warp.name}, ${accesses[accesses.length - 1].site}`;
  findings.add({ kind, message: `${place}: ${what}`, cta: warp.cta.rank, step, accesses });
}

/** Reports a violation of the rules of a memory; returns whether there was one. */
export function reportViolation(
  machine: MachineState,
  warp: WarpState,
  violation: MemoryViolation | null,
): boolean {
  if (violation === null) return false;
  report(machine, warp, violation.kind, violation.message);
  return true;
}

/** Whether all warps of a CTA have ended. */
export function hasExited({ warps }: CtaState): boolean {
  return warps.every(({ current }) => current === null);
}
