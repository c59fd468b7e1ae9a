import { type AccessRule, createAccessRules, type ShadowRules } from './access-rules.js';
import type { AccessClocks, Stamp } from './accesses.js';
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
 * The last writer of each word of a memory, and its readers since. A word is the unit that the memory is
 * divided into: 32 bits of shared memory, a granule of tensor memory; accesses to parts of it are
 * accesses to it.
 *
 * The accesses come in some order in which they can happen, and each is compared with the earlier ones
 * that matter: the last write, and the reads since. As "happens before" is transitive, a word that is
 * accessed through one proxy shows a race exactly if any two of its accesses race, in whatever order they
 * come. (Later races at the same word may be reported only in part, since the write in the first race
 * stands for all earlier accesses.) All calls with one stamp need the same clocks; an access is never in
 * conflict with itself.
 */
export interface ShadowMemory {
  readonly words: number;
  /** A read: it has to come after the last write, and there has to be one. */
  readonly read: (region: Region, stamp: Stamp, clocks: AccessClocks) => readonly Conflict[];
  /**
   * A write: it has to come after the last write and after all reads since. If it does and there are no
   * reads since, the last write was useless (`overwritten-unread`); contents from the start may be
   * overwritten unread.
   */
  readonly write: (region: Region, stamp: Stamp, clocks: AccessClocks) => readonly Conflict[];
  /**
   * Ends the life of contents: like a write it has to come after the last write and all reads since,
   * but contents may die unread. Afterwards the words are uninitialised.
   */
  readonly end: (region: Region, stamp: Stamp, clocks: AccessClocks) => readonly Conflict[];
  /**
   * The words become an mbarrier, which has to come after the last write and all reads since. From then on every access
   * to them is a conflict, until they are vacated.
   */
  readonly occupy: (region: Region, stamp: Stamp, clocks: AccessClocks) => readonly Conflict[];
  /** The words are no longer an mbarrier: accesses have to come after that. */
  readonly vacate: (region: Region, stamp: Stamp, clocks: AccessClocks) => readonly Conflict[];
  /** Makes the words uninitialised, without a check. */
  readonly forget: (region: Region) => void;
  /** Gives the words contents from the start, which anyone may read. */
  readonly initialise: (region: Region) => void;
}

const noConflicts: readonly Conflict[] = [];
const noWordConflicts: readonly WordConflict[] = [];

/** Number of words up to which a loop is faster than TypedArray.fill. */
const shortRun = 8;

/**
 * A shadow of `words` words, uninitialised.
 * @param rules - settings from the memory model, and the callback
 * @throws RequestError from its methods for a region that is not within the memory
 */
export function createShadowMemory(words: number, rules: ShadowRules = {}): ShadowMemory {
  let cells = new Int32Array(words).fill(uninitialisedState);
  // Words are divided into bytes at the first access to a part of one.
  let cellsOfWord: 1 | 4 = 1;
  const states = createShadowStates(words);
  const { reading, writing, ending, occupying, vacating, begin } = createAccessRules(states, rules);
  // The number of the latest access, from 1; areas of one with the same stamp and rule are one access.
  let number = 0;
  let latestStamp: Stamp | null = null;
  let latestRule = reading;

  /** The region in cells; divides words if it has parts of them. */
  function inCells(region: Region): Required<Region> {
    const found = regionInCells(region, words, cellsOfWord);
    if (found !== null) return found;
    const divided = new Int32Array(words * bytesOfWord);
    for (let i = 0; i < divided.length; i++) divided[i] = cells[Math.floor(i / bytesOfWord)];
    cells = divided;
    states.divide(bytesOfWord);
    cellsOfWord = bytesOfWord;
    return regionInCells(region, words, cellsOfWord)!;
  }

  /** Checks a region and replaces its states, run by run of words in the same state. */
  function access(
    region: Region,
    stamp: Stamp,
    clocks: AccessClocks,
    rule: AccessRule,
  ): readonly Conflict[] {
    const { start, count, stride, rows } = inCells(region);
    const { conflictsIn, stateAfter } = rule;
    if (stamp !== latestStamp || rule !== latestRule) {
      number++;
      [latestStamp, latestRule] = [stamp, rule];
      states.sweep(begin(stamp));
    }
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
          next = states.recall(state, number);
          found = noWordConflicts;
          if (next < 0) {
            found = conflictsIn(state, stamp, clocks);
            next = stateAfter(state, stamp, clocks);
            if (found.length === 0) states.remember(state, number, next);
          }
        }
        if (found.length > 0)
          (conflicts ??= createConflictCounter(stamp)).add(
            found,
            Math.floor(firstWord / cellsOfWord),
            Math.ceil((word - firstWord) / cellsOfWord),
          );
        if (next !== latest) change(firstWord, word, latest, next);
      }
    }
    return conflicts === null ? noConflicts : conflicts.list();
  }

  /** Moves cells from the first one to before the last one from one state to another. */
  function change(first: number, end: number, from: number, to: number): void {
    states.move(from, to, end - first);
    if (end - first > shortRun) cells.fill(to, first, end);
    else for (let index = first; index < end; index++) cells[index] = to;
  }

  function fill(region: Region, state: number): void {
    const { start, count, stride, rows } = inCells(region);
    for (let row = 0; row < rows; row++) {
      const end = start + row * stride + count;
      for (let cell = end - count; cell < end; cell++)
        if (cells[cell] !== state) change(cell, cell + 1, cells[cell], state);
    }
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
