import type { MissingOrder } from './accesses.js';

/**
 * What can be wrong with an access. The races are named by the earlier access and the later one; what
 * "earlier" was is an accident of the schedule.
 */
export const conflictKinds = {
  'write-read': 'a read of what is written at no known time before',
  'read-write': 'a write over what may still have to be read',
  'write-write': 'two writes in no order',
  uninitialised: 'a read of what nobody has written',
  'overwritten-unread': 'a write over what nobody has read',
  barrier: 'an access to a live mbarrier that is no operation on it',
} as const;

/** One kind of conflict. */
export type ConflictKind = keyof typeof conflictKinds;

/** A conflict of one access with one earlier access. */
export interface Conflict {
  readonly kind: ConflictKind;
  /** The stamp of the earlier access; 0 where there is none. */
  readonly earlier: number;
  /** The stamp of the access that was checked. */
  readonly later: number;
  /** What a race lacks; null for the others. */
  readonly missing: MissingOrder | null;
  /** The first word of the access with this conflict, in the order of its rows, and how many have it. */
  readonly firstWord: number;
  readonly words: number;
}

/** A conflict that every word of some state has. */
export type WordConflict = Pick<Conflict, 'kind' | 'earlier' | 'missing'>;

/** The conflicts of one access: words with the same kind and earlier access are counted together. */
export interface ConflictCounter {
  readonly add: (conflicts: readonly WordConflict[], firstWord: number, words: number) => void;
  readonly list: () => readonly Conflict[];
}

/** A counter for the access with the stamp `later`. */
export function createConflictCounter(later: number): ConflictCounter {
  const found = new Map<string, Conflict>();
  return {
    add: (conflicts, firstWord, words) => {
      for (const conflict of conflicts) {
        const key = `${conflict.kind} ${conflict.earlier}`;
        const before = found.get(key);
        found.set(
          key,
          before === undefined
            ? { ...conflict, later, firstWord, words }
            : { ...before, words: before.words + words },
        );
      }
    },
    list: () => [...found.values()],
  };
}

/** Last writers that are no stamps. */
export const noWriter = 0;
export const initialWriter = -1;

/** The last writer of words that are a live mbarrier, from the stamp of its initialisation. */
export function barrierWriter(stamp: number): number {
  return initialWriter - stamp;
}

/** The stamp of the initialisation of the mbarrier that words with this last writer are; 0 for others. */
export function barrierOf(writer: number): number {
  return writer < initialWriter ? initialWriter - writer : 0;
}

/** Words that nobody has touched: without contents, or with contents from the start. */
export const uninitialisedState = 0;
export const initialState = 1;

/** What words are in: who wrote them last and who has read them since. Many words share a state. */
export interface ShadowStates {
  readonly count: number;
  readonly writerOf: (state: number) => number;
  /** The stamps of the reads since, without those that a later one covers. */
  readonly readersOf: (state: number) => readonly number[];
  /** What the last write has come after, as far as it is told; null for what is not known. */
  readonly supersededOf: (state: number) => readonly number[] | null;
  /** The state with this writer and these readers; a new one at each call. */
  readonly add: (
    writer: number,
    readers: readonly number[],
    superseded?: readonly number[] | null,
  ) => number;
  /**
   * The state that an access makes of another; -1 if it is not known. Only what the latest access to ask
   * has remembered is.
   */
  readonly recall: (state: number, stamp: number) => number;
  readonly remember: (state: number, stamp: number, next: number) => void;
  /** Drops all states that no cell is in, and renumbers those in the cells. */
  readonly compact: (cells: Int32Array) => void;
}

const noReaders: readonly number[] = [];
const firstCapacity = 256;

/** The states of one memory, with {@link uninitialisedState} and {@link initialState}. */
export function createShadowStates(): ShadowStates {
  let writers: number[] = [noWriter, initialWriter];
  let readers: (readonly number[])[] = [noReaders, noReaders];
  let superseded: (readonly number[] | null)[] = [noReaders, noReaders];
  // What the access `askedBy[state]` makes of the state.
  let askedBy = new Int32Array(firstCapacity);
  let next = new Int32Array(firstCapacity);
  return {
    get count() {
      return writers.length;
    },
    writerOf: (state) => writers[state],
    readersOf: (state) => readers[state],
    supersededOf: (state) => superseded[state],
    add: (writer, reads, before = null) => {
      readers.push(reads);
      superseded.push(before);
      const state = writers.push(writer) - 1;
      if (state >= askedBy.length) {
        const [olderAskedBy, olderNext] = [askedBy, next];
        askedBy = new Int32Array(2 * olderAskedBy.length);
        askedBy.set(olderAskedBy);
        next = new Int32Array(askedBy.length);
        next.set(olderNext);
      }
      return state;
    },
    recall: (state, stamp) => (askedBy[state] === stamp ? next[state] : -1),
    remember: (state, stamp, following) => {
      askedBy[state] = stamp;
      next[state] = following;
    },
    compact: (cells) => {
      const renumbered = new Int32Array(writers.length).fill(-1);
      renumbered[uninitialisedState] = uninitialisedState;
      renumbered[initialState] = initialState;
      const keptWriters = [noWriter, initialWriter];
      const keptReaders = [noReaders, noReaders];
      const keptSuperseded: typeof superseded = [noReaders, noReaders];
      for (let index = 0; index < cells.length; index++) {
        const state = cells[index];
        if (renumbered[state] === -1) {
          renumbered[state] = keptWriters.push(writers[state]) - 1;
          keptReaders.push(readers[state]);
          keptSuperseded.push(superseded[state]);
        }
        cells[index] = renumbered[state];
      }
      writers = keptWriters;
      readers = keptReaders;
      superseded = keptSuperseded;
      askedBy = new Int32Array(Math.max(firstCapacity, 2 * writers.length));
      next = new Int32Array(askedBy.length);
    },
  };
}
