import { type AccessRule, createAccessRules, type ShadowRules } from './access-rules.js';
import type { AccessClocks, AccessTable } from './accesses.js';
import { bytesOfWord, type Region, regionInCells } from './region.js';
import {
  type Conflict,
  type ConflictCounter,
  createConflictCounter,
  createShadowStates,
  initialState,
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
  /**
   * The words become an mbarrier, which has to come after the last write and all reads since. From then on every access
   * to them is a conflict, until they are vacated.
   */
  readonly occupy: (region: Region, stamp: number, clocks: AccessClocks) => readonly Conflict[];
  /** The words are an mbarrier no more: accesses have to come after that. */
  readonly vacate: (region: Region, stamp: number, clocks: AccessClocks) => readonly Conflict[];
  /** The words are uninitialised from now on, without a check. */
  readonly forget: (region: Region) => void;
  /** The words have contents that are there from the start, which anyone may read. */
  readonly initialise: (region: Region) => void;
}

const noConflicts: readonly Conflict[] = [];
const noWordConflicts: readonly WordConflict[] = [];

/** Up to so many words a loop is faster than TypedArray.fill. */
const shortRun = 8;

/** The least number of states that are kept, used or not, before the unused ones are dropped. */
const fewestIdleStates = 2 ** 14;

/**
 * A shadow of so many words, uninitialised.
 * @param accesses - the table that the stamps are from
 * @param rules - of the memory model, and what is told of
 * @throws RequestError from its methods for a region that is not within the memory
 */
export function createShadowMemory(
  words: number,
  accesses: AccessTable,
  rules: ShadowRules = {},
): ShadowMemory {
  let cells = new Int32Array(words).fill(uninitialisedState);
  // Words are divided into bytes when the first access to a part of one comes.
  let cellsOfWord: 1 | 4 = 1;
  const states = createShadowStates();
  const { reading, writing, ending, occupying, vacating, forgetStates } = createAccessRules(
    states,
    accesses,
    rules,
  );
  // To look for unused states takes as long as to look at all words.
  const idleStates = Math.max(fewestIdleStates, words / 4);
  let mostStates = idleStates;
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
    forgetStates();
  }

  function fill(region: Region, state: number): void {
    const { start, count, stride, rows } = inCells(region);
    for (let row = 0; row < rows; row++)
      cells.fill(state, start + row * stride, start + row * stride + count);
  }

  return {
    words,
    read: (region, stamp, clocks) => access(region, stamp, clocks, reading),
    write: (region, stamp, clocks) => access(region, stamp, clocks, writing),
    end: (region, stamp, clocks) => access(region, stamp, clocks, ending),
    occupy: (region, stamp, clocks) => access(region, stamp, clocks, occupying),
    vacate: (region, stamp, clocks) => access(region, stamp, clocks, vacating),
    forget: (region) => {
      fill(region, uninitialisedState);
    },
    initialise: (region) => {
      fill(region, initialState);
    },
  };
}
