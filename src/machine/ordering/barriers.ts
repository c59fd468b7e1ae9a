/** One mbarrier of shared memory: an mbarrier object, in PTX's terms. */
export interface Mbarrier {
  readonly name: string;
  readonly cta: number;
  readonly offset: number;
  /** Arrivals that a phase expects. */
  expected: number;
  /** Arrivals that the current phase lacks. */
  pending: number;
  /** Bytes that the current phase's transactions lack; below 0 while they are ahead of expect_tx. */
  transactionBytes: number;
  /** Bytes that the current phase expects. */
  expectedBytes: number;
  /** The current phase, counted from 0; the one before it is complete. */
  phase: number;
  /** Agents that arrived in the current phase, for messages about deadlocks. */
  readonly arrived: string[];
  /** Time of the last phase's completion, in clocks of the timed schedule, and its step. */
  completedAt: number;
  completedStep: number;
  /** Steps at which the current phase was tested without waiting for it. */
  readonly tests: number[];
}

/** The most bytes that a phase may lack, or be ahead: a tx-count has 20 bits and a sign. Source: PTX ISA, "Tracking asynchronous operations by the mbarrier object". */
export const mostTransactionBytes = 2 ** 20 - 1;

/** Effect of an arrival on a barrier. */
export type ArrivalResult = 'pending' | 'completed' | 'over-arrival';

/** A barrier after its mbarrier.init. */
export function createMbarrier(
  name: string,
  cta: number,
  offset: number,
  expected: number,
): Mbarrier {
  return {
    name,
    cta,
    offset,
    expected,
    pending: expected,
    transactionBytes: 0,
    expectedBytes: 0,
    phase: 0,
    arrived: [],
    completedAt: 0,
    completedStep: 0,
    tests: [],
  };
}

/** Completes the phase when nothing is lacking. Source: PTX ISA, "Phase Completion of the mbarrier". */
function settle(barrier: Mbarrier): ArrivalResult {
  if (barrier.pending > 0 || barrier.transactionBytes !== 0) return 'pending';
  barrier.phase++;
  barrier.pending = barrier.expected;
  barrier.expectedBytes = 0;
  barrier.arrived.length = 0;
  return 'completed';
}

/** Counts arrivals, and bytes that the phase is to wait for before it completes. */
export function arriveOn(
  barrier: Mbarrier,
  count: number,
  who: string,
  expectedBytes = 0,
): ArrivalResult {
  if (count > barrier.pending) return 'over-arrival';
  barrier.transactionBytes += expectedBytes;
  barrier.expectedBytes += expectedBytes;
  barrier.pending -= count;
  barrier.arrived.push(who);
  return settle(barrier);
}

/** Lets the current phase wait for bytes: the expect-tx operation. */
export function expectTransaction(barrier: Mbarrier, bytes: number): ArrivalResult {
  barrier.transactionBytes += bytes;
  barrier.expectedBytes += bytes;
  return settle(barrier);
}

/** Counts bytes that have arrived: the complete-tx operation. */
export function completeTransaction(barrier: Mbarrier, bytes: number): ArrivalResult {
  barrier.transactionBytes -= bytes;
  return settle(barrier);
}

/**
 * Whether mbarrier.try_wait.parity returns true: the phase before the current one has this parity. So a
 * new barrier lets a wait for parity 1 pass.
 */
export function hasCompleted({ phase }: Mbarrier, parity: 0 | 1): boolean {
  return (phase & 1) !== parity;
}

/** A barrier of bar.sync and bar.arrive, or that of a whole cluster. */
export interface NamedBarrier {
  readonly id: number;
  /** Threads of a generation, as given by its first instruction; 0 before. */
  threads: number;
  /** Whether the generation is one of all threads of the CTA: those that end are no longer waited for. */
  isOfAll: boolean;
  /** Threads that have arrived for the generation and ended: the next one is without them. */
  leaving: number;
  arrived: number;
  /** Complete generations. */
  generation: number;
  readonly who: string[];
  /** Lanes brought so far by the reducing instructions of the generation. */
  reduced: ReducedLanes;
  completedAt: number;
}

/** The lanes of a generation of a barrier that take part in a reduction, and those whose predicate is true. */
interface ReducedLanes {
  lanes: number;
  trueLanes: number;
}

export function createNamedBarrier(id: number, threads = 0): NamedBarrier {
  return {
    id,
    threads,
    isOfAll: false,
    leaving: 0,
    arrived: 0,
    generation: 0,
    who: [],
    reduced: { lanes: 0, trueLanes: 0 },
    completedAt: 0,
  };
}

/**
 * Counts arrivals. A generation is complete when all of its threads have arrived.
 * @returns the effect; a `mismatch` is an instruction that names another number of threads
 */
export function arriveAtNamed(
  barrier: NamedBarrier,
  count: number,
  threads: number,
  who: string,
): 'pending' | 'completed' | 'over-arrival' | 'mismatch' {
  if (barrier.arrived > 0 && barrier.threads !== threads) return 'mismatch';
  barrier.threads = threads;
  if (barrier.arrived + count > threads) return 'over-arrival';
  barrier.arrived += count;
  barrier.who.push(who);
  return settleNamed(barrier);
}

function settleNamed(barrier: NamedBarrier): 'pending' | 'completed' {
  if (barrier.arrived < barrier.threads) return 'pending';
  barrier.arrived = 0;
  barrier.who.length = 0;
  barrier.reduced = { lanes: 0, trueLanes: 0 };
  barrier.generation++;
  barrier.threads -= barrier.leaving;
  barrier.leaving = 0;
  return 'completed';
}

/**
 * Removes `count` threads that have ended: a barrier of all threads waits for the others alone. Source: PTX ISA,
 * `barrier.cluster`; for `bar.sync` without a count, CUDA C++ Programming Guide, "Synchronization Functions": from sm_70 on
 * a barrier waits for the threads that have not exited.
 */
export function leaveOutThreads(barrier: NamedBarrier, count: number): 'pending' | 'completed' {
  barrier.threads -= count;
  return barrier.arrived === 0 ? 'pending' : settleNamed(barrier);
}
