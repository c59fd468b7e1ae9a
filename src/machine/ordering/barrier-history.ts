import { clockHas, type EventClocks, type Stamp } from './accesses.js';
import { type BarrierViolation, type BarrierViolationKind, firstMissing } from './finding.js';
import { type Clock, createClock, joinClock, resetClock } from './clock.js';

/**
 * The phases of one mbarrier in a run, and whether they are the same in every schedule.
 *
 * An event is counted to the phase that happens to be current, and a wait names its phase by parity only. So which phase they mean
 * depends on the schedule, unless other synchronisation fixes it. Four conditions are sufficient for this; phase −1 is complete
 * with the initialisation.
 *
 * 1. `arrival`: an event counted to phase k (arrive, expect_tx, complete_tx) happens after all events counted to phase k − 1.
 * 2. `expectation`: an expect_tx counted to phase k happens before an arrive counted to phase k, or is part of one.
 * 3. `early-wait`: a wait for phase k is reached after all events counted to phase k − 1.
 * 4. `late-wait`: a wait for phase k happens before some event counted to phase k + 1, if that completes.
 *
 * **Theorem.** Let a run be complete, its accesses free of races and its barriers free of violations. Let control flow depend on
 * values read only, bytes of transactions be positive, and the order that events have besides barriers (the order within warps,
 * issue before execution, completion before the events that wait for it) be the same in every schedule. Then in every schedule the
 * same events happen in the same phases with the same order and the same values, and none deadlocks.
 *
 * Proof. Let a schedule have executed some events, all as in the run; they are closed under the order of the run. Let e be next.
 * - A phase j is not complete before all events that the run counts to it have been executed: without one of its arrives arrivals
 *   are pending; with all of them all its bytes are expected (2), and without one of its complete_tx, bytes are outstanding.
 * - If the run counts e to phase k, the events of phase k − 1 precede e (1) and have been executed, so that phase k − 1 is
 *   complete, while phase k lacks e. So k is current.
 * - If e is a wait for phase k, phase k − 1 is complete (3), and phase k + 1 is not, as one of its events comes after e (4). So
 *   either phase k is complete, and the wait returns for it, or phase k is current, and the wait goes on, since the phase before
 *   has the other parity (or is none).
 * - If e reads, every write to the same word that has been executed precedes e, since it is ordered with e and e has not been
 *   executed; and all that precede e have been executed. They are ordered among one another, so that the last one is that of the
 *   run. Hence also e's successor in its warp is that of the run.
 * - Suppose that nothing can be executed, and let e be an event of the run that has not been and whose predecessors all have. Only
 *   waits block; but the events of e's phase precede e, so it is complete and e returns. So everything has been executed.
 *
 * Conversely each of 1, 3 and 4, and 2 where the bytes can balance without the expect_tx, describes a schedule that differs if it
 * is violated: execute the events that have to precede e, or precede the end of the next phase, and nothing else.
 *
 * "Happens after" is meant in time: a warp's events before it issues a tcgen05.commit, whose arrival comes after its issue, or
 * before a relaxed arrival count, though they make nothing known about memory (`EventClocks.happened`).
 *
 * The proof needs every event to be distinguishable: no clock has the position of an arrival or of a complete_tx from elsewhere. A
 * warp ticks after it; each commit or bulk transfer has its own position, even where two commits track the same operations.
 */
export interface BarrierHistory {
  /** The current phase, from 0. */
  readonly phase: number;
  /**
   * The clocks that a wait joins when it returns: the events of the last complete phase. Valid until the
   * next `complete`.
   */
  readonly completed: Required<EventClocks>;
  /**
   * An arrival counted to the current phase, with or without an expect_tx of its own.
   * @param clocks - the events that it makes known, and further ones that it comes after
   * @param issued - the clock of its warp at issue, if that is more: it must contain the
   *   initialisation
   */
  readonly arrive: (
    stamp: Stamp,
    clocks: EventClocks,
    issued?: Clock,
  ) => readonly BarrierViolation[];
  /** An expect_tx by itself. */
  readonly expect: (stamp: Stamp, clocks: EventClocks) => readonly BarrierViolation[];
  /** A complete_tx; it may come before the expect_tx of its bytes. */
  readonly transact: (stamp: Stamp, clocks: EventClocks) => readonly BarrierViolation[];
  /** The event counted last has completed the phase. */
  readonly complete: () => readonly BarrierViolation[];
  /**
   * A wait that returned because the phase before the current one is complete.
   * @param clocks - those of the warp before it adds {@link completed} to them
   */
  readonly observe: (stamp: Stamp, clocks: EventClocks) => readonly BarrierViolation[];
}

const noViolations: readonly BarrierViolation[] = [];

function createEventClocks(): Required<EventClocks> {
  return { clock: createClock(), asyncView: createClock(), happened: createClock() };
}

/** Adds the events that have happened before one event to those before another. */
export function joinEventClocks(
  into: Required<EventClocks>,
  { clock, asyncView, happened }: EventClocks,
): void {
  joinClock(into.clock, clock);
  joinClock(into.asyncView, asyncView);
  if (happened !== undefined) joinClock(into.happened, happened);
}

function joinTime(into: Clock, { clock, happened }: EventClocks): void {
  joinClock(into, clock);
  if (happened !== undefined) joinClock(into, happened);
}

/** The events of a barrier's current phase and of the two before it, from its initialisation on. */
class PhaseEvents implements BarrierHistory {
  phase = 0;
  completed = createEventClocks();
  readonly #initialisation: Stamp;
  #events: Stamp[] = [];
  #eventsBefore: readonly Stamp[];
  #eventsTwoBefore: readonly Stamp[];
  #expectations: Stamp[] = [];
  /** Waits for the phase before the current one. */
  #waits: Stamp[] = [];
  #gathered = createEventClocks();
  /** Events before the arrivals of the current phase. */
  readonly #arrivals = createClock();
  /** Events before the events of the current phase, themselves included. */
  readonly #happened = createClock();

  constructor(initialisation: Stamp) {
    this.#initialisation = initialisation;
    this.#eventsBefore = [initialisation];
    this.#eventsTwoBefore = [initialisation];
  }

  arrive(stamp: Stamp, clocks: EventClocks, issued?: Clock): readonly BarrierViolation[] {
    joinTime(this.#arrivals, clocks);
    joinTime(this.#happened, clocks);
    joinEventClocks(this.#gathered, clocks);
    return this.#count(stamp, clocks, issued);
  }

  expect(stamp: Stamp, clocks: EventClocks): readonly BarrierViolation[] {
    // It makes nothing known (its semantics is relaxed); an arrival that comes after it does.
    this.#expectations.push(stamp);
    return this.#count(stamp, clocks);
  }

  transact(stamp: Stamp, clocks: EventClocks): readonly BarrierViolation[] {
    joinTime(this.#happened, clocks);
    joinEventClocks(this.#gathered, clocks);
    return this.#count(stamp, clocks);
  }

  complete(): readonly BarrierViolation[] {
    const violations = [
      ...this.#missingFrom(this.#arrivals, 'expectation', this.phase, this.#expectations),
      ...this.#missingFrom(this.#happened, 'late-wait', this.phase - 1, this.#waits),
    ];
    [this.#gathered, this.completed] = [this.completed, this.#gathered];
    resetClock(this.#gathered.clock);
    resetClock(this.#gathered.asyncView);
    resetClock(this.#gathered.happened);
    resetClock(this.#arrivals);
    resetClock(this.#happened);
    this.#eventsTwoBefore = this.#eventsBefore;
    this.#eventsBefore = this.#events;
    this.#events = [];
    this.#expectations = [];
    this.#waits = [];
    this.phase++;
    return violations;
  }

  observe(stamp: Stamp, clocks: EventClocks): readonly BarrierViolation[] {
    // A later wait of the same agent at the same place stands for the earlier ones, which come before it.
    const isRepeated = ({ chain, site }: Stamp) => chain === stamp.chain && site === stamp.site;
    const repeated = this.#waits.findIndex(isRepeated);
    if (repeated === -1) this.#waits.push(stamp);
    else this.#waits[repeated] = stamp;
    const unordered = this.#missingBefore(this.#eventsTwoBefore, clocks, clocks.clock);
    return unordered === null
      ? noViolations
      : [{ kind: 'early-wait', phase: this.phase - 1, event: stamp, unordered }];
  }

  #count(stamp: Stamp, clocks: EventClocks, issued = clocks.clock): readonly BarrierViolation[] {
    this.#events.push(stamp);
    const unordered = this.#missingBefore(this.#eventsBefore, clocks, issued);
    return unordered === null
      ? noViolations
      : [{ kind: 'arrival', phase: this.phase, event: stamp, unordered }];
  }

  /**
   * The event that must come before this one and does not, or null; the initialisation is a write to memory, so it must also be known, not
   * only have happened.
   */
  #missingBefore(earlier: readonly Stamp[], clocks: EventClocks, issued: Clock): Stamp | null {
    if (!clockHas(issued, this.#initialisation)) return this.#initialisation;
    return earlier[0] === this.#initialisation ? null : firstMissing(earlier, clocks);
  }

  /** Violations of those events that a clock of the current phase lacks. */
  #missingFrom(
    clock: Clock,
    kind: BarrierViolationKind,
    phase: number,
    earlier: readonly Stamp[],
  ): readonly BarrierViolation[] {
    const unordered = this.#events.at(-1) ?? this.#initialisation;
    return earlier
      .filter((event) => firstMissing([event], { clock }) !== null)
      .map((event) => ({ kind, phase, event, unordered }));
  }
}

/**
 * The history of a barrier from its initialisation on.
 * @param initialisation - the stamp of mbarrier.init
 */
export function createBarrierHistory(initialisation: Stamp): BarrierHistory {
  return new PhaseEvents(initialisation);
}

/**
 * The generations of one named barrier (bar.sync and bar.arrive with one id), or of the barrier of a
 * cluster, in a run, and whether they are the same in every schedule.
 *
 * A warp that waits at such a barrier waits for the generation that its own arrival was counted to; it can
 * neither miss it nor take another for it. So only one of the conditions of an mbarrier
 * (barrier-history.ts) remains, with the same proof: an arrival counted to generation g happens after all
 * arrivals counted to generation g − 1. A warp that waits in each generation fulfils it by itself; one
 * that only arrives has to learn by other means that the generation is complete before it arrives again,
 * or both of its arrivals may be counted to the same one.
 */
export interface NamedBarrierHistory {
  /** The current generation, from 0. */
  readonly generation: number;
  /**
   * An arrival counted to the current generation.
   * @param waits - whether it also waits for it, so that {@link leave} will be called
   * @param clocks - the events that the arrival makes known, and further ones that it comes after. An arrival
   *   that makes nothing known (barrier.cluster.arrive with .relaxed) has a chain of its own, and a clock with
   *   nothing but its position.
   */
  readonly arrive: (
    stamp: Stamp,
    waits: boolean,
    clocks: EventClocks,
  ) => readonly BarrierViolation[];
  /** The generation is complete. */
  readonly complete: () => void;
  /**
   * The clocks that a warp joins when it leaves the barrier after waiting for a generation. Later
   * generations may be complete already. Throws a RangeError if nobody waits for the generation any more.
   */
  readonly leave: (generation: number) => Required<EventClocks>;
}

function createGeneration() {
  return { ...createEventClocks(), waiting: 0 };
}

/** The history of a named barrier, which needs no initialisation. */
export function createNamedBarrierHistory(): NamedBarrierHistory {
  let generation = 0;
  let events: Stamp[] = [];
  let eventsBefore: readonly Stamp[] = [];
  let current = createGeneration();
  const left = new Map<number, ReturnType<typeof createGeneration>>();
  return {
    get generation() {
      return generation;
    },
    arrive: (stamp, waits, clocks) => {
      events.push(stamp);
      joinEventClocks(current, clocks);
      if (waits) current.waiting++;
      const unordered = firstMissing(eventsBefore, clocks);
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
