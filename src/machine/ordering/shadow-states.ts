import type { Stamp } from './accesses.js';
import { type MissingOrder } from './accesses.js';

/**
 * Conflicts of an access. The races are named by the earlier access and the later one; which one was
 * earlier is an accident of the schedule.
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
  /** The stamp of the earlier access; null where there is none. */
  readonly earlier: Stamp | null;
  /** The stamp of the access that was checked. */
  readonly later: Stamp;
  /** The order that a race lacks; null for other conflicts. */
  readonly missing: MissingOrder | null;
  /**
   * The first word of the access with this conflict, in the order of its rows, and the number of words
   * that have it.
   */
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
export function createConflictCounter(later: Stamp): ConflictCounter {
  const found: Conflict[] = [];
  return {
    add: (conflicts, firstWord, words) => {
      for (const conflict of conflicts) {
        const index = found.findIndex(
          ({ kind, earlier }) => kind === conflict.kind && earlier === conflict.earlier,
        );
        if (index === -1) found.push({ ...conflict, later, firstWord, words });
        else found[index] = { ...found[index], words: found[index].words + words };
      }
    },
    list: () => found,
  };
}

/** Words that are a live mbarrier, from the stamp of its initialisation. */
export class BarrierWords {
  constructor(readonly initialisation: Stamp) {}
}

/** The last writer of words: nobody, the host before the launch, an access; or they are a live mbarrier. */
export type Writer = null | 'host' | Stamp | BarrierWords;

/** States of words that nobody has touched: without contents, or with contents from the start. */
export const uninitialisedState = 0;
export const initialState = 1;

/**
 * States of words: the last writer and the readers since. Many words share a state, and a state without words is forgotten:
 * so there are never more states than words.
 */
export interface ShadowStates {
  readonly writerOf: (state: number) => Writer;
  /** The stamps of the reads since, without those that a later one covers. */
  readonly readersOf: (state: number) => readonly Stamp[];
  /** The accesses that the last write has come after, if they are kept; null if unknown. */
  readonly supersededOf: (state: number) => readonly Stamp[] | null;
  /** The state with this writer and these readers; a new one at each call. */
  readonly add: (
    writer: Writer,
    readers: readonly Stamp[],
    superseded?: readonly Stamp[] | null,
  ) => number;
  /** Moves `words` words from one state to another. */
  readonly move: (from: number, to: number, words: number) => void;
  /** Each word is divided into `parts` words. */
  readonly divide: (parts: number) => void;
  /** Forgets the states without words, but for one, and reuses their numbers. */
  readonly sweep: (kept: number) => void;
  /**
   * The state that an access turns another into, by the number of the access; -1 if it is not known. Only the answer for the latest access that asked is
   * remembered.
   */
  readonly recall: (state: number, access: number) => number;
  readonly remember: (state: number, access: number, next: number) => void;
}

const noReaders: readonly Stamp[] = [];
const firstCapacity = 16;
/** The count of a forgotten state. */
const forgotten = -1;

function extended(array: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * array.length);
  larger.set(array);
  return larger;
}

/** The states in arrays, by their numbers. */
class NumberedStates implements ShadowStates {
  readonly #writers: Writer[] = [null, 'host'];
  readonly #readers: (readonly Stamp[])[] = [noReaders, noReaders];
  readonly #superseded: (readonly Stamp[] | null)[] = [noReaders, noReaders];
  /** Words in each state. */
  #counts = new Int32Array(firstCapacity);
  /** States that have lost their last word since the last sweep. */
  readonly #idle: number[] = [];
  readonly #freeNumbers: number[] = [];
  /** The state after the access `askedBy[state]`. */
  #next = new Int32Array(firstCapacity);
  #askedBy = new Int32Array(firstCapacity);

  constructor(words: number) {
    this.#counts[uninitialisedState] = words;
  }

  writerOf(state: number): Writer {
    return this.#writers[state];
  }

  readersOf(state: number): readonly Stamp[] {
    return this.#readers[state];
  }

  supersededOf(state: number): readonly Stamp[] | null {
    return this.#superseded[state];
  }

  add(
    writer: Writer,
    readers: readonly Stamp[],
    superseded: readonly Stamp[] | null = null,
  ): number {
    const state = this.#newNumber();
    this.#writers[state] = writer;
    this.#readers[state] = readers;
    this.#superseded[state] = superseded;
    this.#counts[state] = 0;
    this.#askedBy[state] = 0;
    this.#idle.push(state);
    return state;
  }

  move(from: number, to: number, words: number): void {
    const counts = this.#counts;
    counts[to] += words;
    counts[from] -= words;
    if (counts[from] === 0) this.#idle.push(from);
  }

  divide(parts: number): void {
    for (let state = 0; state < this.#writers.length; state++)
      if (this.#counts[state] > 0) this.#counts[state] *= parts;
  }

  sweep(kept: number): void {
    const idle = this.#idle;
    if (idle.length === 0) return;
    let isKept = false;
    for (const state of idle) {
      const hasWords = this.#counts[state] !== 0;
      if (hasWords || state === uninitialisedState || state === initialState) continue;
      if (state === kept) isKept = true;
      else this.#forget(state);
    }
    idle.length = 0;
    if (isKept) idle.push(kept);
  }

  recall(state: number, access: number): number {
    return this.#askedBy[state] === access ? this.#next[state] : -1;
  }

  remember(state: number, access: number, next: number): void {
    this.#askedBy[state] = access;
    this.#next[state] = next;
  }

  #newNumber(): number {
    const state = this.#freeNumbers.pop() ?? this.#writers.length;
    if (state >= this.#counts.length) {
      this.#counts = extended(this.#counts);
      this.#askedBy = extended(this.#askedBy);
      this.#next = extended(this.#next);
    }
    return state;
  }

  #forget(state: number): void {
    this.#counts[state] = forgotten;
    this.#writers[state] = null;
    this.#readers[state] = noReaders;
    this.#superseded[state] = null;
    this.#freeNumbers.push(state);
  }
}

/** The states of a memory of `words` words, all of them in {@link uninitialisedState}; {@link initialState} exists too. */
export function createShadowStates(words: number): ShadowStates {
  return new NumberedStates(words);
}
