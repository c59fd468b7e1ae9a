import { type AccessClocks, type AccessTable, isCovered, missingOrder } from './accesses.js';
import { bytesOfWord, type Region, regionInCells } from './region.js';
import {
  type Conflict,
  type ConflictCounter,
  createConflictCounter,
  createShadowStates,
  initialState,
  initialWriter,
  noWriter,
  uninitialisedState,
  type WordConflict,
} from './shadow-states.js';

/**
 * Who wrote each word of a memory last and who has read it since. A word is what the memory is divided
 * into: 32 bits of shared memory, a granule of tensor memory; accesses to parts of it are accesses to it.
 *
 * The accesses come in some order in which they can happen, and each is compared with those of the ones
 * before that matter: the last write, and the reads since. As "happens before" is transitive, a word that
 * is accessed through one proxy shows a race exactly if any two of its accesses race, in whatever order
 * they come. (Of what follows the first race at a word only a part may be reported, since the write in it
 * stands for all that went before.) All calls with one stamp need the same clocks; an access is never in
 * conflict with itself.
 */
export interface ShadowMemory {
  readonly words: number;
  /** A read: it has to come after the last write, and there has to be one. */
  readonly read: (region: Region, stamp: number, clocks: AccessClocks) => readonly Conflict[];
  /**
   * A write: it has to come after the last write and after all reads since. If it does and there are no
   * reads since, the last write was in vain (`overwritten-unread`); contents from the start may be
   * overwritten unread.
   */
  readonly write: (region: Region, stamp: number, clocks: AccessClocks) => readonly Conflict[];
  /**
   * Ends the life of contents: as a write it has to come after the last write and all reads since, but
   * contents may die unread. Afterwards the words are uninitialised.
   */
  readonly end: (region: Region, stamp: number, clocks: AccessClocks) => readonly Conflict[];
  /** The words are uninitialised from now on, without a check. */
  readonly forget: (region: Region) => void;
  /** The words have contents that are there from the start, which anyone may read. */
  readonly initialise: (region: Region) => void;
}

const noConflicts: readonly Conflict[] = [];
const noWordConflicts: readonly WordConflict[] = [];
const noReaders: readonly number[] = [];

/** One of the things that can be done to words in some state. */
interface AccessRule {
  /** 1 or -1: what one stamp's writes make of a state is not what its end of life makes of it. */
  readonly key: 1 | -1;
  readonly conflictsIn: (
    state: number,
    stamp: number,
    clocks: AccessClocks,
  ) => readonly WordConflict[];
  readonly stateAfter: (state: number, stamp: number, clocks: AccessClocks) => number;
}

/** Up to so many words a loop is faster than TypedArray.fill. */
const shortRun = 8;

/** The least number of states that are kept, used or not, before the unused ones are dropped. */
const fewestIdleStates = 2 ** 14;

/** What a shadow goes by. */
interface ShadowRules {
  /** Whether the async proxy overwrites what has been read only after a fence; default true. */
  readonly readFences?: boolean;
  /**
   * Called for strong accesses in no order, of which one writes: they are no race, but the schedule decides what they
   * give.
   */
  readonly onUnorderedStrong?: () => void;
}

/**
 * A shadow of so many words, uninitialised.
 * @param accesses - the table that the stamps are from
 * @param rules - of the memory model, and what is told of
 * @throws RequestError from its methods for a region that is not within the memory
 */
export function createShadowMemory(
  words: number,
  accesses: AccessTable,
  { readFences = true, onUnorderedStrong = () => undefined }: ShadowRules = {},
): ShadowMemory {
  let cells = new Int32Array(words).fill(uninitialisedState);
  // Words are divided into bytes when the first access to a part of one comes.
  let cellsOfWord: 1 | 4 = 1;
  const states = createShadowStates();
  // To look for unused states takes as long as to look at all words.
  const idleStates = Math.max(fewestIdleStates, words / 4);
  let mostStates = idleStates;
  // The state of the words that the latest write has written.
  let written = { stamp: 0, state: uninitialisedState };
  // Strong writes come in no order with one another; those before the last one are kept among the readers.
  let hasStrongWrites = false;

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
      onUnorderedStrong();
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
    let races = race('write-read', writer, stamp, clocks);
    if (hasStrongWrites)
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
    let races = writer === noWriter ? noWordConflicts : race('write-write', writer, stamp, clocks);
    // Who has read it knows that it is there; whether the readers come before is asked next.
    const isRead = !readFences && states.readersOf(state).length > 0;
    if (isRead && races.every(({ missing }) => missing === 'proxy-fence')) races = noWordConflicts;
    for (const reader of states.readersOf(state)) {
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
      races.length === 0;
    return isInVain ? [{ kind: 'overwritten-unread', earlier: writer, missing: null }] : races;
  }

  function stateAfterRead(state: number, stamp: number, clocks: AccessClocks): number {
    const readers = states.readersOf(state);
    if (readers.includes(stamp)) return state;
    const kept = readers.filter(
      (reader) =>
        accesses.kindOf(reader) === 'write' || !isCovered(accesses, reader, stamp, clocks),
    );
    return states.add(states.writerOf(state), [...kept, stamp]);
  }

  function stateAfterWrite(state: number, stamp: number, clocks: AccessClocks): number {
    if (accesses.isStrong(stamp)) {
      hasStrongWrites = true;
      const writer = states.writerOf(state);
      const kept = [...states.readersOf(state), ...(writer > 0 ? [writer] : [])].filter(
        (earlier) =>
          earlier !== stamp &&
          missingOrder(accesses, earlier, accesses.proxyOf(stamp), clocks) !== null,
      );
      if (kept.length > 0) return states.add(stamp, kept);
    }
    if (written.stamp !== stamp) written = { stamp, state: states.add(stamp, noReaders) };
    return written.state;
  }

  /** The region in cells; divides words where it has parts of them. */
  function inCells(region: Region): Required<Region> {
    const found = regionInCells(region, words, cellsOfWord);
    if (found !== null) return found;
    const divided = new Int32Array(words * bytesOfWord);
    for (let i = 0; i < divided.length; i++) divided[i] = cells[Math.floor(i / bytesOfWord)];
    cells = divided;
    cellsOfWord = bytesOfWord;
    return regionInCells(region, words, cellsOfWord)!;
  }

  /** Checks a region and replaces its states, run by run of words in the same state. */
  function access(
    region: Region,
    stamp: number,
    clocks: AccessClocks,
    { key, conflictsIn, stateAfter }: AccessRule,
  ): readonly Conflict[] {
    const { start, count, stride, rows } = inCells(region);
    if (states.count > mostStates) compact();
    const memoKey = key * stamp;
    let conflicts: ConflictCounter | null = null;
    let [state, next] = [-1, -1];
    let found = noWordConflicts;
    for (let row = 0; row < rows; row++) {
      const end = start + row * stride + count;
      for (let word = end - count; word < end;) {
        const latest = cells[word];
        const firstWord = word++;
        while (word < end && cells[word] === latest) word++;
        if (latest !== state) {
          state = latest;
          next = states.recall(state, memoKey);
          found = noWordConflicts;
          if (next < 0) {
            found = conflictsIn(state, stamp, clocks);
            next = stateAfter(state, stamp, clocks);
            if (found.length === 0) states.remember(state, memoKey, next);
          }
        }
        if (found.length > 0)
          (conflicts ??= createConflictCounter(stamp)).add(
            found,
            Math.floor(firstWord / cellsOfWord),
            Math.ceil((word - firstWord) / cellsOfWord),
          );
        if (word - firstWord > shortRun) cells.fill(next, firstWord, word);
        else for (let index = firstWord; index < word; index++) cells[index] = next;
      }
    }
    return conflicts === null ? noConflicts : conflicts.list();
  }

  function compact(): void {
    states.compact(cells);
    mostStates = 2 * states.count + idleStates;
    written = { stamp: 0, state: uninitialisedState };
  }

  function fill(region: Region, state: number): void {
    const { start, count, stride, rows } = inCells(region);
    for (let row = 0; row < rows; row++)
      cells.fill(state, start + row * stride, start + row * stride + count);
  }

  const reading: AccessRule = { key: 1, conflictsIn: readConflicts, stateAfter: stateAfterRead };
  const writing: AccessRule = { key: 1, conflictsIn: writeConflicts, stateAfter: stateAfterWrite };
  const ending: AccessRule = {
    key: -1,
    conflictsIn: endConflicts,
    stateAfter: () => uninitialisedState,
  };

  return {
    words,
    read: (region, stamp, clocks) => access(region, stamp, clocks, reading),
    write: (region, stamp, clocks) => access(region, stamp, clocks, writing),
    end: (region, stamp, clocks) => access(region, stamp, clocks, ending),
    forget: (region) => {
      fill(region, uninitialisedState);
    },
    initialise: (region) => {
      fill(region, initialState);
    },
  };
}
