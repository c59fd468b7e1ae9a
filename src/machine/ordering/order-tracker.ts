import type { AccessOrder, Instruction, MemoryScope } from '../isa/index.js';
import type { SharedMemory } from '../memory/index.js';
import type { AccessClocks, Proxy } from './accesses.js';
import type { Mbarrier, NamedBarrier } from './barriers.js';
import type { Clock } from './clock.js';
import type { FindingCollector } from './finding.js';
import type { OperationKind } from './memory-model.js';
import type { ScheduleDependence } from './schedule-dependences.js';

/** A warp, as far as order goes. */
export interface OrderedWarp {
  /** `CTA 0 warp 12`, and what the program calls it. */
  readonly name: string;
  readonly cta: OrderedCta;
  /** The instruction that it executes; null at its end. */
  readonly current: Instruction | null;
  /** Null in a run whose order nobody follows. */
  readonly order: WarpOrder | null;
}

/** A CTA, as far as order goes. */
export interface OrderedCta {
  readonly rank: number;
  /** Its number among all CTAs whose order is followed together. */
  readonly number: number;
  readonly shared: SharedMemory;
  readonly warps: readonly OrderedWarp[];
}

/** A run, as far as order goes. */
export interface OrderedRun {
  readonly ctas: readonly OrderedCta[];
  readonly findings: FindingCollector;
  readonly clusterBarrier: NamedBarrier;
  /** What findings call an address of global memory. */
  readonly placeOfGlobal: (address: number) => string;
  /** Steps executed. */
  readonly step: number;
}

/** What a warp knows to have happened. */
export interface WarpOrder {
  readonly chain: number;
  /** The warp that it is of: lanes that have diverged have that of their warp. */
  readonly thread: number;
  /** Everything that is ordered before its next instruction. */
  readonly clock: Clock;
  /** What has happened before it in time besides, as of `EventClocks`. */
  readonly happened: Clock;
  /** What a fence.proxy.async on the way has made known to the async proxy as well. */
  readonly asyncView: Clock;
  /** What is ordered before its next accesses to tensor memory, where a model asks for fences. */
  readonly tensorView: Clock;
  /** Its complete tcgen05 loads and stores that no fence has ordered before what follows. */
  readonly unfenced: Clock;
  /** Its tcgen05.mma and tcgen05.cp: what tcgen05.commit tracks. */
  readonly tensorOperations: AccessClocks;
  /** What fence.mbarrier_init has made known to the cluster. */
  readonly published: Clock;
  /** What its strong reads have seen released, which a fence makes known to it. */
  readonly observed: AccessClocks;
  /** The chains of lanes that had diverged and have come back: for those that diverge next. */
  readonly strandChains: number[];
  /** The chains of its bulk writes: the first one, and those of lanes that have come back. */
  readonly writeChains: WriteChain[];
  /** What its last fence came after, by the scope: what its strong writes release. */
  readonly fenced: Map<MemoryScope, AccessClocks>;
}

/** A chain of bulk writes of one warp, of which each is known to be complete where a later one is. */
export interface WriteChain {
  readonly chain: number;
  /** Of the latest write. */
  time: number;
}

/** What is ordered before an asynchronous operation; and, its own tick included, with it. */
export interface OperationOrder {
  readonly clock: Clock;
  /** What is ordered before what it does in tensor memory; the same but for tcgen05 fences. */
  readonly tensorClock: Clock;
  readonly asyncView: Clock;
  /** As of `EventClocks`. */
  readonly happened: Clock;
  /** What its warp knew when it issued it: more than it makes known, of a tcgen05.commit. */
  readonly issued: Clock;
  /** Whether its position is in no clock before the warp knows that it is complete: not in its own either. */
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

/** What an access to memory orders, if it does: a strong one. */
export interface StrongAccess extends AccessOrder {
  /** Whether nothing comes between its read and its write. */
  readonly isAtomic: boolean;
}

/** A rectangle of memory. */
export interface MemoryArea {
  /** `shared`, `global`: words of 32 bits. `tensor`: granules of 16 lanes × 1 column, 512 to a row. */
  readonly space: 'shared' | 'tensor' | 'global';
  /** Whose memory it is; of global memory, the CTA that accesses it. */
  readonly cta: OrderedCta;
  /** What is counted in: words (the default), or bytes, of shared or global memory. */
  readonly unit?: 'word' | 'byte';
  /** In global memory an address. */
  readonly start: number;
  readonly count: number;
  readonly stride?: number;
  readonly rows?: number;
  /** Left out for a weak access. */
  readonly strong?: StrongAccess | undefined;
  /** Of a write: whether it leaves every byte as it is. */
  readonly repeats?: boolean | undefined;
}

/** Who accesses or arrives: a warp, or an operation that it has issued. */
export interface Actor {
  readonly warp: OrderedWarp;
  readonly order: OperationOrder | null;
  /** The place of an operation's instruction in the program, also where nobody follows its order. */
  readonly site?: string;
}

/**
 * Follows which events of a cluster's run are ordered, and reports those that are not. The run reports
 * every access and every event that orders others; the tracker does not change the run.
 */
export interface OrderTracker {
  /**
   * What strong accesses gave as the schedule decided: atomic operations in no order, a flag that is polled. A run that has
   * any speaks for one schedule. In a grid they are those of all clusters so far.
   */
  readonly dependences: () => readonly ScheduleDependence[];
  /** Whether each tcgen05.commit comes after a fence for the initialisation of its mbarrier: the ISA does not say that it has to. */
  readonly areCommitsFenced: () => boolean;
  readonly createWarp: () => WarpOrder;
  /** Lanes of a warp go their own way: they know what the warp knows, and no more of one another. */
  readonly divergeWarp: (warp: OrderedWarp) => WarpOrder;
  /** They have come back: the warp knows what they know. */
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
  /** Operations that are one to the hardware, none of which has been performed: each comes after what any of them comes after. */
  readonly unite: (orders: readonly OperationOrder[]) => void;
  /** The warp knows that an operation is complete: by a wait, or since it has its registers. */
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
  /** A wait has returned since the phase before the current one is complete. */
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
  /** The warp gives up the right to allocate of its CTA. */
  readonly relinquishTensor: (machine: OrderedRun, warp: OrderedWarp) => void;
  /** Columns of tensor memory are freed, with what they hold. */
  readonly endTensor: (
    machine: OrderedRun,
    warp: OrderedWarp,
    firstColumn: number,
    columns: number,
  ) => void;
  /**
   * The run has gone wrong: tells of waits at one place that have returned twice for one phase of a barrier, as they do where
   * a parity is not flipped. By themselves they are nothing illegal.
   */
  readonly tellRepeatedWaits: (machine: OrderedRun) => void;
  /** All warps have ended: whatever reached a CTA has to be known there to be complete. */
  readonly end: (machine: OrderedRun) => void;
}
