import { clockIncludes, type Clock } from './clock.js';

/** A place in the order of events: the event of a chain at a time. */
export interface Position {
  readonly chain: number;
  /** From 1. */
  readonly time: number;
}

/** Gives events their positions in chains. */
export interface Chains {
  /** Chains so far: the components that clocks need. */
  readonly count: number;
  /** A new chain that belongs to one agent for good; the agent counts its times itself, from 1. */
  readonly createAgent: () => number;
  /**
   * The position of an asynchronous operation.
   * @param start - what has happened before the operation starts; it is left as it is. The operation's
   *   own clock is this one with its position added. Other clocks get the position from whatever tells
   *   of the operation's completion, and from nothing else.
   */
  readonly begin: (start: Clock) => Position;
}

/**
 * Chains for a vector clock whose events are no fixed set of threads. The events of one chain happen one
 * after the other. A component per operation would let clocks grow with the run; so an operation joins a
 * chain whose last operation is known to be complete before it starts, and only if there is none makes a
 * new one. This is the online decomposition into chains on which the chain clocks of Agarwal and Garg
 * (PODC 2005) rest; no fewer chains would do than operations are at most in flight at once.
 */
export function createChains(): Chains {
  let count = 0;
  const chains: number[] = [];
  const lastTimes: number[] = [];
  return {
    get count() {
      return count;
    },
    createAgent: () => count++,
    begin: (start) => {
      for (let index = 0; index < chains.length; index++) {
        const chain = chains[index];
        if (clockIncludes(start, chain, lastTimes[index]))
          return { chain, time: ++lastTimes[index] };
      }
      chains.push(count);
      lastTimes.push(1);
      return { chain: count++, time: 1 };
    },
  };
}
