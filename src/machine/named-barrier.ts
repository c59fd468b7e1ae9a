/** A barrier of bar.sync and bar.arrive, or that of a whole cluster. */
export interface NamedBarrier {
  readonly id: number;
  /** Threads of a generation, as its first instruction says; 0 before. */
  threads: number;
  arrived: number;
  /** Complete generations. */
  generation: number;
  readonly who: string[];
  completedAt: number;
}

export function createNamedBarrier(id: number, threads = 0): NamedBarrier {
  return { id, threads, arrived: 0, generation: 0, who: [], completedAt: 0 };
}

/**
 * Counts arrivals. A generation is complete when all of its threads have arrived.
 * @returns what happened; a `mismatch` is an instruction that names another number of threads
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
  if (barrier.arrived < threads) return 'pending';
  barrier.arrived = 0;
  barrier.who.length = 0;
  barrier.generation++;
  return 'completed';
}
