/**
 * A vector clock: for every chain (chains.ts) the time of its latest event that has happened before.
 * Absent components are 0, and events have times from 1.
 *
 * A component stands for everything that its chain did up to that time, so an agent must tick after each
 * act that makes its clock known to others (an arrival, the issue of an asynchronous operation, a proxy
 * fence): its later events then have later times than those that it has made known.
 */
export interface Clock {
  /** Times by chain; 0 from `length` on. */
  times: Int32Array;
  /** Components that may differ from 0. */
  length: number;
}

/** The components for which a new clock has room; it doubles when it has more. */
const firstCapacity = 8;

/** An empty clock: nothing has happened before it. */
export function createClock(): Clock {
  return { times: new Int32Array(firstCapacity), length: 0 };
}

function extend(clock: Clock, length: number): void {
  if (length > clock.times.length) {
    const times = new Int32Array(Math.max(length, 2 * clock.times.length));
    times.set(clock.times);
    clock.times = times;
  }
  clock.length = length;
}

/** A new clock with the components of another. */
export function copyClock(from: Clock): Clock {
  return { times: from.times.slice(), length: from.length };
}

/** Adds to `into` everything that has happened before `from`: the maximum of each component. */
export function joinClock(into: Clock, from: Clock): void {
  const { length, times: source } = from;
  if (length > into.length) extend(into, length);
  const target = into.times;
  for (let chain = 0; chain < length; chain++) {
    const time = source[chain];
    if (time > target[chain]) target[chain] = time;
  }
}

/** The time of the latest event of a chain that is in the clock; 0 if there is none. */
export function clockTime(clock: Clock, chain: number): number {
  return chain < clock.length ? clock.times[chain] : 0;
}

/** Whether the event of a chain at a time is in the clock, that is, has happened before. */
export function clockIncludes(clock: Clock, chain: number, time: number): boolean {
  return time <= clockTime(clock, chain);
}

/** Whether everything that is in `other` is in the clock. */
export function clockContains(clock: Clock, other: Clock): boolean {
  for (let chain = 0; chain < other.length; chain++)
    if (other.times[chain] > clockTime(clock, chain)) return false;
  return true;
}

/** Adds the event of a chain at a time, and with it all that the chain did before. */
export function includeInClock(clock: Clock, chain: number, time: number): void {
  if (chain >= clock.length) extend(clock, chain + 1);
  if (time > clock.times[chain]) clock.times[chain] = time;
}

/**
 * Moves a chain on by one.
 * @returns its new time
 */
export function tickClock(clock: Clock, chain: number): number {
  if (chain >= clock.length) extend(clock, chain + 1);
  return ++clock.times[chain];
}

/** Empties a clock; it keeps its memory. */
export function resetClock(clock: Clock): void {
  clock.times.fill(0, 0, clock.length);
  clock.length = 0;
}

/** A place in the order of events: the event of a chain at a time. */
export interface Position {
  readonly chain: number;
  /** Time from 1 on. */
  readonly time: number;
}

/** Assigns events their positions in chains. */
export interface Chains {
  /** Chains so far: the components that clocks need. */
  readonly count: number;
  /** A new chain that belongs to one agent for good; the agent counts its times itself, from 1. */
  readonly createAgent: () => number;
  /**
   * The position of an asynchronous operation.
   * @param start - the events before the operation starts; it is not changed. The operation's own
   *   clock is this one with its position added. Other clocks get the position from the events that
   *   signal the operation's completion, and from nothing else.
   */
  readonly begin: (start: Clock) => Position;
}

/**
 * Chains for a vector clock whose events do not belong to a fixed set of threads. The events of one
 * chain happen one after the other. A component per operation would let clocks grow with the run; so an
 * operation joins a chain whose last operation is known to be complete before it starts, and begins a
 * new one only if there is none. This is the online decomposition into chains of the chain clocks of
 * Agarwal and Garg (PODC 2005); at least as many chains are needed as operations are ever in flight at
 * once.
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
