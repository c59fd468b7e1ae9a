import type { AccessOrder, Instruction, MemoryScope } from '../isa/index.js';
import type { SharedMemory } from '../memory/index.js';
import type { AccessClocks, Proxy } from './accesses.js';
import type { Mbarrier, NamedBarrier } from './barriers.js';
import type { Clock } from './clock.js';
import type { FindingCollector } from './finding.js';
import type { OperationKind } from './memory-model.js';
import type { ScheduleDependence } from './schedule-dependences.js';

/** A warp, as the tracker sees it. */
export interface OrderedWarp {
  /** `CTA 0 warp 12`, and the program's name for it. */
  readonly name: string;
  readonly cta: OrderedCta;
  /** The instruction that it executes; null at its end. */
  readonly current: Instruction | null;
  /** Null in a run whose order is not followed. */
  readonly order: WarpOrder | null;
}

/** A CTA, as the tracker sees it. */
export interface OrderedCta {
  readonly rank: number;
  /** Number of the CTA among all CTAs whose order is followed together. */
  readonly number: number;
  readonly shared: SharedMemory;
  readonly warps: readonly OrderedWarp[];
}

/** A run, as the tracker sees it. */
export interface OrderedRun {
  readonly ctas: readonly OrderedCta[];
  readonly findings: FindingCollector;
  readonly clusterBarrier: NamedBarrier;
  /** Name of an address of global memory in findings. */
  readonly placeOfGlobal: (address: number) => string;
  /** Steps executed. */
  readonly step: number;
}

/** Events that a warp knows to have happened. */
export interface WarpOrder {
  readonly chain: number;
  /** Number of its warp; lanes that have diverged have that of their warp. */
  readonly thread: number;
  /** Everything that is ordered before its next instruction. */
  readonly clock: Clock;
  /** Further events that have happened before it in time, as of `EventClocks`. */
  readonly happened: Clock;
  /** The events that a fence.proxy.async on the way has made known to the async proxy as well. */
  readonly asyncView: Clock;
  /** The events ordered before its next accesses to tensor memory, where a model requires fences. */
  readonly tensorView: Clock;
  /** Its complete tcgen05 loads and stores that no fence has ordered before later events. */
  readonly unfenced: Clock;
  /** Its tcgen05.mma and tcgen05.cp: the operations that tcgen05.commit tracks. */
  readonly tensorOperations: AccessClocks;
  /** The events that fence.mbarrier_init has made known to the cluster. */
  readonly published: Clock;
  /** The events that its strong reads have seen released, which a fence makes known to it. */
  readonly observed: AccessClocks;
  /** The chains of lanes that had diverged and have converged again: for the next divergence. */
  readonly strandChains: number[];
  /** The chains of its bulk writes: the first one, and those of lanes that have converged. */
  readonly writeChains: WriteChain[];
  /** The events before its last fence, by the scope: its strong writes release them. */
  readonly fenced: Map<MemoryScope, AccessClocks>;
}

/** A chain of bulk writes of one warp, each known to be complete where a later one is. */
interface WriteChain {
  readonly chain: number;
  /** Time of the latest write. */
  time: number;
}

/** The events ordered before an asynchronous operation, and, with its own tick, the operation itself. */
export interface OperationOrder {
  readonly clock: Clock;
  /** The events ordered before its accesses to tensor memory; they differ only by tcgen05 fences. */
  readonly tensorClock: Clock;
  readonly asyncView: Clock;
  /** As of `EventClocks`. */
  readonly happened: Clock;
  /** The clock of its warp at issue: for a tcgen05.commit it holds more than the commit makes known. */
  readonly issued: Clock;
  /** Whether no clock has its position before the warp knows that it is complete, not even its own. */
  readonly isInWriteChain: boolean;
  /** The operations that a tcgen05.commit tracks; null for others. */
  readonly tracked: Clock | null;
  readonly chain: number;
  readonly time: number;
  readonly proxy: Proxy;
  /** The instruction, and its place in the program. */
  readonly name: string;
  readonly site: string;
}

/** The ordering of a strong access to memory. */
export interface StrongAccess extends AccessOrder {
  /** Whether nothing comes between its read and its write. */
  readonly isAtomic: boolean;
}

/** A rectangle of memory. */
export interface MemoryArea {
  /** `shared`, `global`: words of 32 bits. `tensor`: granules of 16 lanes × 1 column, 512 to a row. */
  readonly space: 'shared' | 'tensor' | 'global';
  /** The CTA whose memory it is; for global memory, the CTA that accesses it. */
  readonly cta: OrderedCta;
  /** The unit of counts: words (the default), or bytes, of shared or global memory. */
  readonly unit?: 'word' | 'byte';
  /** The first cell; in global memory an address. */
  readonly start: number;
  readonly count: number;
  readonly stride?: number;
  readonly rows?: number;
  /** Left out for a weak access. */
  readonly strong?: StrongAccess | undefined;
  /** For a write: whether it leaves every byte as it is. */
  readonly repeats?: boolean | undefined;
}

/** The agent that accesses or arrives: a warp, or an operation that it has issued. */
export interface Actor {
  readonly warp: OrderedWarp;
  readonly order: OperationOrder | null;
  /** The place of an operation's instruction in the program, also where its order is not followed. */
  readonly site?: string;
}

/**
 * Follows which events of a cluster's run are ordered, and reports those that are not. The run reports
 * every access and every event that orders others; the tracker does not change the run.
 */
export interface OrderTracker {
  /**
   * Strong accesses whose values the schedule decided: atomic operations in no order, a flag that is polled. A run that has
   * any speaks for one schedule. In a grid they are those of all clusters so far.
   */
  readonly dependences: () => readonly ScheduleDependence[];
  /** Whether each tcgen05.commit comes after a fence for the initialisation of its mbarrier; the ISA does not require it. */
  readonly areCommitsFenced: () => boolean;
  readonly createWarp: () => WarpOrder;
  /** Lanes of a warp diverge: they know the events that the warp knows, and no more of one another. */
  readonly divergeWarp: (warp: OrderedWarp) => WarpOrder;
  /** They have converged: the warp learns the events that they know. */
  readonly convergeWarp: (warp: OrderedWarp, strand: OrderedWarp) => void;
  readonly access: (
    machine: OrderedRun,
    actor: Actor,
    kind: 'read' | 'write',
    area: MemoryArea,
  ) => void;
  /**
   * An operation that the warp issues now; MMAs of `predecessors` are executed before it. `reaches`: the
   * CTAs that must not end before it is known to be complete.
   */
  readonly begin: (
    warp: OrderedWarp,
    kind: OperationKind,
    predecessors: readonly (OperationOrder | null)[],
    reaches: readonly OrderedCta[],
  ) => OperationOrder;
  /** Operations that the hardware treats as one, none of which has been performed: each comes after the predecessors of all. */
  readonly unite: (orders: readonly OperationOrder[]) => void;
  /** The warp knows that an operation is complete: by a wait, or because it has its registers. */
  readonly finish: (warp: OrderedWarp, kind: OperationKind, order: OperationOrder) => void;
  readonly fence: (
    warp: OrderedWarp,
    fence: 'before_thread_sync' | 'after_thread_sync' | 'mbarrier_init' | 'proxy.async',
  ) => void;
  /** A fence of the memory model, which acquires and releases with the strong accesses around it. */
  readonly fenceMemory: (warp: OrderedWarp, scope: MemoryScope) => void;
  readonly initialise: (machine: OrderedRun, warp: OrderedWarp, barrier: Mbarrier) => void;
  /** The end of a barrier, which has to come after all its arrivals and waits. */
  readonly invalidate: (machine: OrderedRun, warp: OrderedWarp, barrier: Mbarrier) => void;
  /** An arrival, bytes that arrive or bytes that are expected, counted to the barrier's current phase. */
  readonly arrive: (
    machine: OrderedRun,
    actor: Actor,
    barrier: Mbarrier,
    what: 'arrival' | 'bytes' | 'expectation',
  ) => void;
  /** The barrier has completed a phase. */
  readonly complete: (machine: OrderedRun, barrier: Mbarrier) => void;
  /** A wait has returned because the phase before the current one is complete. */
  readonly observe: (machine: OrderedRun, warp: OrderedWarp, barrier: Mbarrier) => void;
  readonly arriveAtNamed: (
    machine: OrderedRun,
    warp: OrderedWarp,
    barrier: NamedBarrier,
    how: { readonly waits: boolean; readonly isRelaxed: boolean },
  ) => void;
  readonly completeNamed: (barrier: NamedBarrier) => void;
  readonly leaveNamed: (warp: OrderedWarp, barrier: NamedBarrier, generation: number) => void;
  /** The warp's CTA has these columns of tensor memory from now on. */
  readonly allocateTensor: (
    machine: OrderedRun,
    warp: OrderedWarp,
    firstColumn: number,
    columns: number,
  ) => void;
  /** The warp gives up its CTA's right to allocate. */
  readonly relinquishTensor: (machine: OrderedRun, warp: OrderedWarp) => void;
  /** Columns of tensor memory are freed, with their contents. */
  readonly endTensor: (
    machine: OrderedRun,
    warp: OrderedWarp,
    firstColumn: number,
    columns: number,
  ) => void;
  /**
   * The run has gone wrong: reports waits at one place that have returned twice for one phase of a barrier, as happens where
   * a parity is not flipped. They are not illegal by themselves.
   */
  readonly tellRepeatedWaits: (machine: OrderedRun) => void;
  /** All warps have ended: every operation that reached a CTA has to be known there to be complete. */
  readonly end: (machine: OrderedRun) => void;
}
