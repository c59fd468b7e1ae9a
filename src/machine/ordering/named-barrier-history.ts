import type { AccessClocks, AccessTable } from './accesses.js';
import { firstMissing, type BarrierViolation } from './barrier-violations.js';
import { createClock, joinClock } from './clock.js';

/**
 * The generations of one named barrier (bar.sync and bar.arrive with one id), or of the barrier of a
 * cluster, in a run, and whether they are the same in every schedule.
 *
 * A warp that waits at such a barrier waits for the generation that its own arrival was counted to; it can
 * neither miss it nor take another for it. So one condition is left of those of an mbarrier
 * (barrier-history.ts), with the same proof: an arrival counted to generation g happens after all arrivals
 * counted to generation g − 1. A warp that waits in each generation fulfils it by itself; one that only
 * arrives has to learn by other means that the generation is complete before it arrives again, or both
 * of its arrivals may be counted to the same one.
 */
export interface NamedBarrierHistory {
  /** The current generation, from 0. */
  readonly generation: number;
  /**
   * An arrival counted to the current generation.
   * @param waits - whether it also waits for it, so that {@link leave} will be called
   * @param clocks - what the arrival makes known. One that makes nothing known (barrier.cluster.arrive
   *   with .relaxed) has a chain of its own, and clocks with nothing but its position.
   */
  readonly arrive: (
    stamp: number,
    waits: boolean,
    clocks: AccessClocks,
  ) => readonly BarrierViolation[];
  /** The generation is complete. */
  readonly complete: () => void;
  /**
   * What a warp comes after that leaves the barrier after waiting for a generation. Later generations may
   * be complete already. Throws a RangeError if nobody waits for the generation any more.
   */
  readonly leave: (generation: number) => AccessClocks;
}

const noViolations: readonly BarrierViolation[] = [];

function createGeneration() {
  return { clock: createClock(), asyncView: createClock(), waiting: 0 };
}

/**
 * The history of a named barrier, which needs no initialisation.
 * @param accesses - the table that the stamps are from
 */
export function createNamedBarrierHistory(accesses: AccessTable): NamedBarrierHistory {
  let generation = 0;
  let events: number[] = [];
  let eventsBefore: readonly number[] = [];
  let current = createGeneration();
  const left = new Map<number, ReturnType<typeof createGeneration>>();
  return {
    get generation() {
      return generation;
    },
    arrive: (stamp, waits, clocks) => {
      events.push(stamp);
      joinClock(current.clock, clocks.clock);
      joinClock(current.asyncView, clocks.asyncView);
      if (waits) current.waiting++;
      const unordered = firstMissing(accesses, eventsBefore, clocks.clock);
      return unordered === null
        ? noViolations
        : [{ kind: 'arrival', phase: generation, event: stamp, unordered }];
    },
    complete: () => {
      if (current.waiting > 0) left.set(generation, current);
      current = createGeneration();
      [eventsBefore, events] = [events, []];
      generation++;
    },
    leave: (of) => {
      const clocks = left.get(of);
      if (clocks === undefined)
        throw new RangeError(
          `nobody waits for generation ${of} of a named barrier in ${generation}`,
        );
      if (--clocks.waiting === 0) left.delete(of);
      return clocks;
    },
  };
}
