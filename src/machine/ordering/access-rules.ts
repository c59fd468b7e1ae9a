import { type AccessClocks, areMorallyStrong, isCovered, missingOrder, Stamp } from './accesses.js';
import {
  BarrierWords,
  type ShadowStates,
  uninitialisedState,
  type WordConflict,
} from './shadow-states.js';

const noWordConflicts: readonly WordConflict[] = [];
const nothingWritten = { stamp: null, state: uninitialisedState };
const noReaders: readonly Stamp[] = [];

/** Most superseded accesses that are kept for a write: an equal write after more of them needs an order. */
const mostSuperseded = 64;

/**
 * Whether every event that comes after a write also comes after an earlier one of the same instruction: both are in one
 * chain.
 */
function isStoodFor(earlier: Stamp, { chain, kind, proxy, site }: Stamp): boolean {
  const isAlike = earlier.kind === kind && earlier.proxy === proxy && earlier.site === site;
  return earlier.chain === chain && isAlike;
}

/** The accesses that a write has come after; null if there are too many to keep. */
function shortened(superseded: readonly Stamp[]): readonly Stamp[] | null {
  return superseded.length <= mostSuperseded ? superseded : null;
}

/** The conflict of every access with words that are a live mbarrier. */
function touchesBarrier({ initialisation }: BarrierWords): readonly WordConflict[] {
  return [{ kind: 'barrier', earlier: initialisation, missing: null }];
}

/** One operation on words in some state. */
export interface AccessRule {
  readonly conflictsIn: (
    state: number,
    stamp: Stamp,
    clocks: AccessClocks,
  ) => readonly WordConflict[];
  readonly stateAfter: (state: number, stamp: Stamp, clocks: AccessClocks) => number;
}

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

/** Effects of reads, writes and the end of contents on the words of a shadow. */
interface AccessRules {
  readonly reading: AccessRule;
  readonly writing: AccessRule;
  readonly ending: AccessRule;
  /** The words become an mbarrier: all earlier accesses to them have to come before. */
  readonly occupying: AccessRule;
  /** The words stop being an mbarrier. */
  readonly vacating: AccessRule;
  /**
   * Must be called before each access, while no state is being looked at.
   * @returns a state that may be needed again though no word is in it
   */
  readonly begin: (stamp: Stamp) => number;
}

/** The rules for a shadow with these states. */
export function createAccessRules(
  states: ShadowStates,
  { readFences = true, equalWrites = true, onUnorderedStrong = () => undefined }: ShadowRules,
): AccessRules {
  // The state of the words that the latest write has written.
  let written: { readonly stamp: Stamp | null; readonly state: number } = nothingWritten;
  // The accesses that it has come after, at any of these words.
  let superseded: Stamp[] = [];
  // Strong writes, and equal ones, come in no order with one another; those before the last one are kept among the readers.
  let hasJointWrites = false;

  /** The conflict of an access with an earlier one, as a list of at most one. */
  function race(
    kind: 'write-read' | 'read-write' | 'write-write',
    earlier: Stamp,
    stamp: Stamp,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    if (earlier === stamp) return noWordConflicts;
    const missing = missingOrder(earlier, stamp.proxy, clocks);
    if (missing === null) return noWordConflicts;
    if (areMorallyStrong(earlier, stamp)) {
      onUnorderedStrong(earlier, stamp);
      return noWordConflicts;
    }
    const isSettled = kind === 'read-write' && missing === 'proxy-fence' && !readFences;
    return isSettled ? noWordConflicts : [{ kind, earlier, missing }];
  }

  function readConflicts(
    state: number,
    stamp: Stamp,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    const writer = states.writerOf(state);
    if (writer === null) return [{ kind: 'uninitialised', earlier: null, missing: null }];
    if (writer instanceof BarrierWords) return touchesBarrier(writer);
    let races =
      writer instanceof Stamp ? race('write-read', writer, stamp, clocks) : noWordConflicts;
    if (hasJointWrites)
      for (const earlier of states.readersOf(state))
        if (earlier.kind === 'write')
          races = [...races, ...race('write-read', earlier, stamp, clocks)];
    return races;
  }

  function endConflicts(
    state: number,
    stamp: Stamp,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    const writer = states.writerOf(state);
    if (writer instanceof BarrierWords) return touchesBarrier(writer);
    const isEqual = repeatsWrites(state, stamp, clocks);
    const isJoint = (earlier: Stamp) => isEqual && isEqualWrite(earlier);
    let races =
      writer instanceof Stamp && !isJoint(writer)
        ? race('write-write', writer, stamp, clocks)
        : noWordConflicts;
    // A reader of the write knows that it is complete; the loop below checks whether the readers
    // come before.
    const isRead = !readFences && states.readersOf(state).length > 0;
    if (isRead && races.every(({ missing }) => missing === 'proxy-fence')) races = noWordConflicts;
    for (const reader of states.readersOf(state)) {
      if (isJoint(reader)) continue;
      const withReader = race('read-write', reader, stamp, clocks);
      if (withReader.length > 0) races = [...races, ...withReader];
    }
    return races;
  }

  function writeConflicts(
    state: number,
    stamp: Stamp,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    const races = endConflicts(state, stamp, clocks);
    const writer = states.writerOf(state);
    const isInVain =
      writer instanceof Stamp &&
      !stamp.isStrong &&
      writer !== stamp &&
      states.readersOf(state).length === 0 &&
      races.length === 0 &&
      comesAfter(writer, stamp, clocks);
    return isInVain ? [{ kind: 'overwritten-unread', earlier: writer, missing: null }] : races;
  }

  /** Whether an access comes after an earlier one, for the proxies of both. */
  function comesAfter(earlier: Stamp, stamp: Stamp, clocks: AccessClocks): boolean {
    return missingOrder(earlier, stamp.proxy, clocks) === null;
  }

  /** Whether a write is one of those that a later one may repeat. */
  function isEqualWrite(earlier: Stamp): boolean {
    return earlier.kind === 'write' && !earlier.isStrong;
  }

  /**
   * Whether a write may come in any order with the last writes, since it writes the same bytes: that holds where it comes
   * after everything that they came after; otherwise another order would leave the words as they were before.
   */
  function repeatsWrites(state: number, stamp: Stamp, clocks: AccessClocks): boolean {
    if (equalWrites || !stamp.repeats) return false;
    const before = states.supersededOf(state);
    return (
      before !== null &&
      before.length <= mostSuperseded &&
      before.every((earlier) => comesAfter(earlier, stamp, clocks))
    );
  }

  function stateAfterRead(state: number, stamp: Stamp, clocks: AccessClocks): number {
    const readers = states.readersOf(state);
    const writer = states.writerOf(state);
    if (readers.includes(stamp) || writer instanceof BarrierWords) return state;
    const kept = readers.filter(
      (reader) => reader.kind === 'write' || !isCovered(reader, stamp, clocks),
    );
    return states.add(writer, [...kept, stamp]);
  }

  function stateAfterWrite(state: number, stamp: Stamp, clocks: AccessClocks): number {
    const writer = states.writerOf(state);
    if (writer instanceof BarrierWords) return state;
    const writers = writer instanceof Stamp ? [writer] : [];
    const earlier = [...states.readersOf(state), ...writers].filter((one) => one !== stamp);
    if (stamp.isStrong || repeatsWrites(state, stamp, clocks)) {
      hasJointWrites = true;
      const joint = earlier.filter((one) => !comesAfter(one, stamp, clocks));
      const others = earlier.filter((one) => !joint.includes(one));
      const before = states.supersededOf(state);
      if (joint.length > 0)
        return states.add(
          stamp,
          joint.filter((one) => !isStoodFor(one, stamp)),
          before === null ? null : shortened([...before, ...others]),
        );
    }
    if (written.stamp !== stamp) {
      superseded = [];
      written = { stamp, state: states.add(stamp, noReaders, equalWrites ? null : superseded) };
    }
    if (!equalWrites && superseded.length <= mostSuperseded) superseded.push(...earlier);
    return written.state;
  }

  const reading: AccessRule = { conflictsIn: readConflicts, stateAfter: stateAfterRead };
  const writing: AccessRule = { conflictsIn: writeConflicts, stateAfter: stateAfterWrite };
  const ending: AccessRule = {
    conflictsIn: endConflicts,
    stateAfter: () => uninitialisedState,
  };
  const occupying: AccessRule = {
    // A second initialisation is reported where the barrier is initialised.
    conflictsIn: (state, stamp, clocks) =>
      states.writerOf(state) instanceof BarrierWords
        ? noWordConflicts
        : endConflicts(state, stamp, clocks),
    stateAfter: (_state, stamp) => states.add(new BarrierWords(stamp), noReaders),
  };
  const vacating: AccessRule = {
    conflictsIn: () => noWordConflicts,
    // The words count as read: a write there loses nothing.
    stateAfter: (_state, stamp) => states.add(stamp, [stamp]),
  };

  return {
    reading,
    writing,
    ending,
    occupying,
    vacating,
    begin: (stamp) => {
      if (written.stamp !== stamp) written = nothingWritten;
      return written.state;
    },
  };
}
