import { type AccessClocks, type AccessTable, isCovered, missingOrder } from './accesses.js';
import {
  barrierOf,
  barrierWriter,
  initialWriter,
  noWriter,
  type ShadowStates,
  uninitialisedState,
  type WordConflict,
} from './shadow-states.js';

const noWordConflicts: readonly WordConflict[] = [];
const noReaders: readonly number[] = [];

/** One of the things that can be done to words in some state. */
export interface AccessRule {
  /** 1 or -1: what one stamp's writes make of a state is not what ends, or begins, a life there. */
  readonly key: 1 | -1;
  readonly conflictsIn: (
    state: number,
    stamp: number,
    clocks: AccessClocks,
  ) => readonly WordConflict[];
  readonly stateAfter: (state: number, stamp: number, clocks: AccessClocks) => number;
}

/** Of what a write has come after so much is looked at: an equal write after more needs an order. */
const mostSuperseded = 64;

/** What a shadow goes by. */
export interface ShadowRules {
  /** Whether the async proxy overwrites what has been read only after a fence; default true. */
  readonly readFences?: boolean;
  /** Whether weak writes of the same bytes need an order; default true. */
  readonly equalWrites?: boolean;
  /**
   * Called for strong accesses in no order, of which one writes, by their stamps: they are no race, but the schedule decides
   * what they give.
   */
  readonly onUnorderedStrong?: (earlier: number, later: number) => void;
}

/** What reads, writes and the end of contents do to the words of a shadow. */
interface AccessRules {
  readonly reading: AccessRule;
  readonly writing: AccessRule;
  readonly ending: AccessRule;
  /** The words become an mbarrier: whatever has been done to them has to come before. */
  readonly occupying: AccessRule;
  /** They are one no more. */
  readonly vacating: AccessRule;
  /** Has to be called where states get other numbers. */
  readonly forgetStates: () => void;
}

/** The rules for a shadow with these states, whose stamps are from this table. */
export function createAccessRules(
  states: ShadowStates,
  accesses: AccessTable,
  { readFences = true, equalWrites = true, onUnorderedStrong = () => undefined }: ShadowRules,
): AccessRules {
  // The state of the words that the latest write has written.
  let written = { stamp: 0, state: uninitialisedState };
  // What it has come after at any of them.
  let superseded: number[] = [];
  // Strong writes, and equal ones, come in no order with one another; those before the last one are kept among the readers.
  let hasJointWrites = false;

  /** The conflict of an access with an earlier one, as a list of at most one. */
  function race(
    kind: 'write-read' | 'read-write' | 'write-write',
    earlier: number,
    stamp: number,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    if (earlier === stamp || earlier === initialWriter) return noWordConflicts;
    const missing = missingOrder(accesses, earlier, accesses.proxyOf(stamp), clocks);
    if (missing === null) return noWordConflicts;
    if (accesses.areMorallyStrong(earlier, stamp)) {
      onUnorderedStrong(earlier, stamp);
      return noWordConflicts;
    }
    const isSettled = kind === 'read-write' && missing === 'proxy-fence' && !readFences;
    return isSettled ? noWordConflicts : [{ kind, earlier, missing }];
  }

  function readConflicts(
    state: number,
    stamp: number,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    const writer = states.writerOf(state);
    if (writer === noWriter) return [{ kind: 'uninitialised', earlier: 0, missing: null }];
    const barrier = barrierOf(writer);
    if (barrier !== 0) return [{ kind: 'barrier', earlier: barrier, missing: null }];
    let races = race('write-read', writer, stamp, clocks);
    if (hasJointWrites)
      for (const earlier of states.readersOf(state))
        if (accesses.kindOf(earlier) === 'write')
          races = [...races, ...race('write-read', earlier, stamp, clocks)];
    return races;
  }

  function endConflicts(
    state: number,
    stamp: number,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    const writer = states.writerOf(state);
    const barrier = barrierOf(writer);
    if (barrier !== 0) return [{ kind: 'barrier', earlier: barrier, missing: null }];
    const isEqual = repeatsWrites(state, stamp, clocks);
    const isJoint = (earlier: number) => isEqual && isEqualWrite(earlier);
    let races =
      writer === noWriter || isJoint(writer)
        ? noWordConflicts
        : race('write-write', writer, stamp, clocks);
    // Who has read it knows that it is there; whether the readers come before is asked next.
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
    stamp: number,
    clocks: AccessClocks,
  ): readonly WordConflict[] {
    const races = endConflicts(state, stamp, clocks);
    const writer = states.writerOf(state);
    const isInVain =
      writer > 0 &&
      !accesses.isStrong(stamp) &&
      writer !== stamp &&
      states.readersOf(state).length === 0 &&
      races.length === 0 &&
      comesAfter(writer, stamp, clocks);
    return isInVain ? [{ kind: 'overwritten-unread', earlier: writer, missing: null }] : races;
  }

  /** Whether an access comes after an earlier one, for the proxies of both. */
  function comesAfter(earlier: number, stamp: number, clocks: AccessClocks): boolean {
    return missingOrder(accesses, earlier, accesses.proxyOf(stamp), clocks) === null;
  }

  /** Whether a write is one of those that a later one may repeat. */
  function isEqualWrite(earlier: number): boolean {
    return earlier > 0 && accesses.kindOf(earlier) === 'write' && !accesses.isStrong(earlier);
  }

  /**
   * Whether a write may come in any order with the last writes, since it writes what they have written: so it is where it
   * comes after all that they came after, else another order would show their words as they were before.
   */
  function repeatsWrites(state: number, stamp: number, clocks: AccessClocks): boolean {
    if (equalWrites || !accesses.repeats(stamp)) return false;
    const before = states.supersededOf(state);
    return (
      before !== null &&
      before.length <= mostSuperseded &&
      before.every((earlier) => comesAfter(earlier, stamp, clocks))
    );
  }

  function stateAfterRead(state: number, stamp: number, clocks: AccessClocks): number {
    const readers = states.readersOf(state);
    if (readers.includes(stamp) || barrierOf(states.writerOf(state)) !== 0) return state;
    const kept = readers.filter(
      (reader) =>
        accesses.kindOf(reader) === 'write' || !isCovered(accesses, reader, stamp, clocks),
    );
    return states.add(states.writerOf(state), [...kept, stamp]);
  }

  function stateAfterWrite(state: number, stamp: number, clocks: AccessClocks): number {
    const writer = states.writerOf(state);
    if (barrierOf(writer) !== 0) return state;
    const earlier = [...states.readersOf(state), ...(writer > 0 ? [writer] : [])].filter(
      (one) => one !== stamp,
    );
    if (accesses.isStrong(stamp) || repeatsWrites(state, stamp, clocks)) {
      hasJointWrites = true;
      const kept = earlier.filter((one) => !comesAfter(one, stamp, clocks));
      const others = earlier.filter((one) => !kept.includes(one));
      const before = states.supersededOf(state);
      if (kept.length > 0)
        return states.add(stamp, kept, before === null ? null : [...before, ...others]);
    }
    if (written.stamp !== stamp) {
      superseded = [];
      written = { stamp, state: states.add(stamp, noReaders, equalWrites ? null : superseded) };
    }
    if (!equalWrites && superseded.length <= mostSuperseded) superseded.push(...earlier);
    return written.state;
  }

  const reading: AccessRule = { key: 1, conflictsIn: readConflicts, stateAfter: stateAfterRead };
  const writing: AccessRule = { key: 1, conflictsIn: writeConflicts, stateAfter: stateAfterWrite };
  const ending: AccessRule = {
    key: -1,
    conflictsIn: endConflicts,
    stateAfter: () => uninitialisedState,
  };
  const occupying: AccessRule = {
    key: -1,
    // That there is one already is told where it is initialised.
    conflictsIn: (state, stamp, clocks) =>
      barrierOf(states.writerOf(state)) !== 0
        ? noWordConflicts
        : endConflicts(state, stamp, clocks),
    stateAfter: (_state, stamp) => states.add(barrierWriter(stamp), noReaders),
  };
  const vacating: AccessRule = {
    key: -1,
    conflictsIn: () => noWordConflicts,
    // As if it had been read: nothing is lost by writing there.
    stateAfter: (_state, stamp) => states.add(stamp, [stamp]),
  };

  return {
    reading,
    writing,
    ending,
    occupying,
    vacating,
    forgetStates: () => {
      written = { stamp: 0, state: uninitialisedState };
    },
  };
}
