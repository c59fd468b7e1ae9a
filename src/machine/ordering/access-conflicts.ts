import { type AccessClocks, areMorallyStrong, missingOrder, Stamp } from './accesses.js';
import { BarrierWords, type ShadowStates, type WordConflict } from './shadow-states.js';

/** Settings of the shadow. */
export interface ShadowRules {
  /** Whether the async proxy may overwrite bytes that have been read only after a fence; default true. */
  readonly readFences?: boolean;
  /** Whether weak writes of the same bytes need an order; default true. */
  readonly equalWrites?: boolean;
  /**
   * Called with the stamps of unordered strong accesses, one of them a write: they are no race, but the schedule decides the
   * values they read.
   */
  readonly onUnorderedStrong?: (earlier: Stamp, later: Stamp) => void;
}

export const noWordConflicts: readonly WordConflict[] = [];

/** Most superseded accesses that are kept for a write: an equal write after more of them needs an order. */
export const mostSuperseded = 64;

/** The conflict of every access with words that are a live mbarrier. */
function touchesBarrier({ initialisation }: BarrierWords): readonly WordConflict[] {
  return [{ kind: 'barrier', earlier: initialisation, missing: null }];
}

/** Whether an access comes after an earlier one, for the proxies of both. */
export function comesAfter(earlier: Stamp, stamp: Stamp, clocks: AccessClocks): boolean {
  return missingOrder(earlier, stamp.proxy, clocks) === null;
}

/** Whether a write is one of those that a later one may repeat. */
function isEqualWrite(earlier: Stamp): boolean {
  return earlier.kind === 'write' && !earlier.isStrong;
}

/** The conflicts of reads, writes and ends with the accesses that the state of a word keeps. */
export class AccessConflicts {
  /** Strong writes, and equal ones, come in no order with one another; those before the last one are kept among the readers. */
  hasJointWrites = false;
  readonly #states: ShadowStates;
  readonly #readFences: boolean;
  readonly #equalWrites: boolean;
  readonly #onUnorderedStrong: (earlier: Stamp, later: Stamp) => void;

  constructor(
    states: ShadowStates,
    { readFences = true, equalWrites = true, onUnorderedStrong = () => undefined }: ShadowRules,
  ) {
    this.#states = states;
    this.#readFences = readFences;
    this.#equalWrites = equalWrites;
    this.#onUnorderedStrong = onUnorderedStrong;
  }

  ofRead(state: number, stamp: Stamp, clocks: AccessClocks): readonly WordConflict[] {
    const writer = this.#states.writerOf(state);
    if (writer === null) return [{ kind: 'uninitialised', earlier: null, missing: null }];
    if (writer instanceof BarrierWords) return touchesBarrier(writer);
    let races =
      writer instanceof Stamp ? this.#race('write-read', writer, stamp, clocks) : noWordConflicts;
    if (this.hasJointWrites)
      for (const earlier of this.#states.readersOf(state))
        if (earlier.kind === 'write')
          races = [...races, ...this.#race('write-read', earlier, stamp, clocks)];
    return races;
  }

  ofWrite(state: number, stamp: Stamp, clocks: AccessClocks): readonly WordConflict[] {
    const races = this.ofEnd(state, stamp, clocks);
    const writer = this.#states.writerOf(state);
    const isInVain =
      writer instanceof Stamp &&
      !stamp.isStrong &&
      writer !== stamp &&
      this.#states.readersOf(state).length === 0 &&
      races.length === 0 &&
      comesAfter(writer, stamp, clocks);
    return isInVain ? [{ kind: 'overwritten-unread', earlier: writer, missing: null }] : races;
  }

  ofEnd(state: number, stamp: Stamp, clocks: AccessClocks): readonly WordConflict[] {
    const writer = this.#states.writerOf(state);
    if (writer instanceof BarrierWords) return touchesBarrier(writer);
    const isEqual = this.repeatsWrites(state, stamp, clocks);
    const isJoint = (earlier: Stamp) => isEqual && isEqualWrite(earlier);
    let races =
      writer instanceof Stamp && !isJoint(writer)
        ? this.#race('write-write', writer, stamp, clocks)
        : noWordConflicts;
    const readers = this.#states.readersOf(state);
    // A reader of the write knows that it is complete; the loop below checks whether the readers
    // come before.
    const isRead = !this.#readFences && readers.length > 0;
    if (isRead && races.every(({ missing }) => missing === 'proxy-fence')) races = noWordConflicts;
    for (const reader of readers) {
      if (isJoint(reader)) continue;
      const withReader = this.#race('read-write', reader, stamp, clocks);
      if (withReader.length > 0) races = [...races, ...withReader];
    }
    return races;
  }

  /** Those of words that become an mbarrier; a second initialisation is reported where the barrier is initialised. */
  ofOccupation(state: number, stamp: Stamp, clocks: AccessClocks): readonly WordConflict[] {
    return this.#states.writerOf(state) instanceof BarrierWords
      ? noWordConflicts
      : this.ofEnd(state, stamp, clocks);
  }

  /**
   * Whether a write may come in any order with the last writes, since it writes the same bytes: that holds where it comes
   * after everything that they came after; otherwise another order would leave the words as they were before.
   */
  repeatsWrites(state: number, stamp: Stamp, clocks: AccessClocks): boolean {
    if (this.#equalWrites || !stamp.repeats) return false;
    const before = this.#states.supersededOf(state);
    return (
      before !== null &&
      before.length <= mostSuperseded &&
      before.every((earlier) => comesAfter(earlier, stamp, clocks))
    );
  }

  /** The conflict of an access with an earlier one, as a list of at most one. */
  #race(
    kind: 'write-read' | 'read-write' | 'write-write',
    earlier: Stamp,
    stamp: Stamp,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    if (earlier === stamp) return noWordConflicts;
    const missing = missingOrder(earlier, stamp.proxy, clocks);
    if (missing === null) return noWordConflicts;
    if (areMorallyStrong(earlier, stamp)) {
      this.#onUnorderedStrong(earlier, stamp);
      return noWordConflicts;
    }
    const isSettled = kind === 'read-write' && missing === 'proxy-fence' && !this.#readFences;
    return isSettled ? noWordConflicts : [{ kind, earlier, missing }];
  }
}
