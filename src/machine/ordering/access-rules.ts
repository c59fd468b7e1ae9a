import {
  AccessConflicts,
  comesAfter,
  mostSuperseded,
  noWordConflicts,
  type ShadowRules,
} from './access-conflicts.js';
import { type AccessClocks, isCovered, Stamp } from './accesses.js';
import {
  BarrierWords,
  type ShadowStates,
  uninitialisedState,
  type WordConflict,
} from './shadow-states.js';

const nothingWritten = { stamp: null, state: uninitialisedState };
const noReaders: readonly Stamp[] = [];

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

/** One operation on words in some state. */
export interface AccessRule {
  readonly conflictsIn: (
    state: number,
    stamp: Stamp,
    clocks: AccessClocks,
  ) => readonly WordConflict[];
  readonly stateAfter: (state: number, stamp: Stamp, clocks: AccessClocks) => number;
}

/** Effects of reads, writes and the end of contents on the words of a shadow. */
export interface AccessRules {
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

/** The states that reads and writes leave words in. */
class NextStates {
  readonly #states: ShadowStates;
  readonly #conflicts: AccessConflicts;
  readonly #keepsSuperseded: boolean;
  /** The state of the words that the latest write has written. */
  #written: { readonly stamp: Stamp | null; readonly state: number } = nothingWritten;
  /** The accesses that it has come after, at any of these words. */
  #superseded: Stamp[] = [];

  constructor(states: ShadowStates, conflicts: AccessConflicts, keepsSuperseded: boolean) {
    this.#states = states;
    this.#conflicts = conflicts;
    this.#keepsSuperseded = keepsSuperseded;
  }

  begin(stamp: Stamp): number {
    if (this.#written.stamp !== stamp) this.#written = nothingWritten;
    return this.#written.state;
  }

  afterRead(state: number, stamp: Stamp, clocks: AccessClocks): number {
    const readers = this.#states.readersOf(state);
    const writer = this.#states.writerOf(state);
    if (readers.includes(stamp) || writer instanceof BarrierWords) return state;
    const kept = readers.filter(
      (reader) => reader.kind === 'write' || !isCovered(reader, stamp, clocks),
    );
    return this.#states.add(writer, [...kept, stamp]);
  }

  afterWrite(state: number, stamp: Stamp, clocks: AccessClocks): number {
    const writer = this.#states.writerOf(state);
    if (writer instanceof BarrierWords) return state;
    const writers = writer instanceof Stamp ? [writer] : [];
    const earlier = [...this.#states.readersOf(state), ...writers].filter((one) => one !== stamp);
    if (stamp.isStrong || this.#conflicts.repeatsWrites(state, stamp, clocks)) {
      const joined = this.#afterJointWrite(state, stamp, clocks, earlier);
      if (joined !== null) return joined;
    }
    if (this.#written.stamp !== stamp) {
      this.#superseded = [];
      const superseded = this.#keepsSuperseded ? this.#superseded : null;
      this.#written = { stamp, state: this.#states.add(stamp, noReaders, superseded) };
    }
    if (this.#keepsSuperseded && this.#superseded.length <= mostSuperseded)
      // Words of several states have come after the same accesses.
      this.#superseded.push(...earlier.filter((one) => !this.#superseded.includes(one)));
    return this.#written.state;
  }

  /** The state after a write that may come in any order with earlier ones; null where it comes after all of them. */
  #afterJointWrite(
    state: number,
    stamp: Stamp,
    clocks: AccessClocks,
    earlier: readonly Stamp[],
  ): number | null {
    this.#conflicts.hasJointWrites = true;
    const joint = earlier.filter((one) => !comesAfter(one, stamp, clocks));
    const others = earlier.filter((one) => !joint.includes(one));
    const before = this.#states.supersededOf(state);
    if (joint.length === 0) return null;
    return this.#states.add(
      stamp,
      joint.filter((one) => !isStoodFor(one, stamp)),
      before === null ? null : shortened([...before, ...others]),
    );
  }
}

/** The rules for a shadow with these states. */
export function createAccessRules(states: ShadowStates, rules: ShadowRules): AccessRules {
  const conflicts = new AccessConflicts(states, rules);
  const next = new NextStates(states, conflicts, rules.equalWrites === false);
  return {
    reading: {
      conflictsIn: (state, stamp, clocks) => conflicts.ofRead(state, stamp, clocks),
      stateAfter: (state, stamp, clocks) => next.afterRead(state, stamp, clocks),
    },
    writing: {
      conflictsIn: (state, stamp, clocks) => conflicts.ofWrite(state, stamp, clocks),
      stateAfter: (state, stamp, clocks) => next.afterWrite(state, stamp, clocks),
    },
    ending: {
      conflictsIn: (state, stamp, clocks) => conflicts.ofEnd(state, stamp, clocks),
      stateAfter: () => uninitialisedState,
    },
    occupying: {
      conflictsIn: (state, stamp, clocks) => conflicts.ofOccupation(state, stamp, clocks),
      stateAfter: (_state, stamp) => states.add(new BarrierWords(stamp), noReaders),
    },
    vacating: {
      conflictsIn: () => noWordConflicts,
      // The words count as read: a write there loses nothing.
      stateAfter: (_state, stamp) => states.add(stamp, [stamp]),
    },
    begin: (stamp) => next.begin(stamp),
  };
}
