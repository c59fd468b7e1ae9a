import { noWordConflicts, type ShadowRules } from './access-conflicts.js';
import { type AccessRule, type AccessRules, createAccessRules } from './access-rules.js';
import type { AccessClocks, Stamp } from './accesses.js';
import { bytesOfWord, type Region, regionInCells } from './region.js';
import {
  type Conflict,
  type ConflictCounter,
  createConflictCounter,
  createShadowStates,
  initialState,
  type ShadowStates,
  uninitialisedState,
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

/** Number of words up to which a loop is faster than TypedArray.fill. */
const shortRun = 8;

/** A shadow that has the state of each word as a number. */
class StateShadow implements ShadowMemory {
  readonly words: number;
  #cells: Int32Array;
  /** Words are divided into bytes at the first access to a part of one. */
  #cellsOfWord: 1 | 4 = 1;
  readonly #states: ShadowStates;
  readonly #rules: AccessRules;
  /** The number of the latest access, from 1; areas of one with the same stamp and rule are one access. */
  #number = 0;
  #latestStamp: Stamp | null = null;
  #latestRule: AccessRule | null = null;

  constructor(words: number, rules: ShadowRules) {
    this.words = words;
    this.#cells = new Int32Array(words).fill(uninitialisedState);
    this.#states = createShadowStates(words);
    this.#rules = createAccessRules(this.#states, rules);
  }

  read(region: Region, stamp: Stamp, clocks: AccessClocks): readonly Conflict[] {
    return this.#access(region, stamp, clocks, this.#rules.reading);
  }

  write(region: Region, stamp: Stamp, clocks: AccessClocks): readonly Conflict[] {
    return this.#access(region, stamp, clocks, this.#rules.writing);
  }

  end(region: Region, stamp: Stamp, clocks: AccessClocks): readonly Conflict[] {
    return this.#access(region, stamp, clocks, this.#rules.ending);
  }

  occupy(region: Region, stamp: Stamp, clocks: AccessClocks): readonly Conflict[] {
    return this.#access(region, stamp, clocks, this.#rules.occupying);
  }

  vacate(region: Region, stamp: Stamp, clocks: AccessClocks): readonly Conflict[] {
    return this.#access(region, stamp, clocks, this.#rules.vacating);
  }

  forget(region: Region): void {
    this.#fill(region, uninitialisedState);
  }

  initialise(region: Region): void {
    this.#fill(region, initialState);
  }

  /** The region in cells; divides words if it has parts of them. */
  #inCells(region: Region): Required<Region> {
    const found = regionInCells(region, this.words, this.#cellsOfWord);
    if (found !== null) return found;
    const divided = new Int32Array(this.words * bytesOfWord);
    for (let i = 0; i < divided.length; i++) divided[i] = this.#cells[Math.floor(i / bytesOfWord)];
    this.#cells = divided;
    this.#states.divide(bytesOfWord);
    this.#cellsOfWord = bytesOfWord;
    return regionInCells(region, this.words, this.#cellsOfWord)!;
  }

  /** Checks a region and replaces its states, run by run of words in the same state. */
  #access(
    region: Region,
    stamp: Stamp,
    clocks: AccessClocks,
    rule: AccessRule,
  ): readonly Conflict[] {
    const { start, count, stride, rows } = this.#inCells(region);
    const cells = this.#cells;
    this.#begin(stamp, rule);
    const number = this.#number;
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
          next = this.#states.recall(state, number);
          found = noWordConflicts;
          if (next < 0) {
            found = rule.conflictsIn(state, stamp, clocks);
            next = rule.stateAfter(state, stamp, clocks);
            if (found.length === 0) this.#states.remember(state, number, next);
          }
        }
        if (found.length > 0)
          (conflicts ??= createConflictCounter(stamp)).add(
            found,
            Math.floor(firstWord / this.#cellsOfWord),
            Math.ceil((word - firstWord) / this.#cellsOfWord),
          );
        if (next !== latest) this.#change(firstWord, word, latest, next);
      }
    }
    return conflicts === null ? noConflicts : conflicts.list();
  }

  /** An access with another stamp or rule than the latest one has the next number. */
  #begin(stamp: Stamp, rule: AccessRule): void {
    if (stamp === this.#latestStamp && rule === this.#latestRule) return;
    this.#number++;
    this.#latestStamp = stamp;
    this.#latestRule = rule;
    this.#states.sweep(this.#rules.begin(stamp));
  }

  /** Moves cells from the first one to before the last one from one state to another. */
  #change(first: number, end: number, from: number, to: number): void {
    const cells = this.#cells;
    this.#states.move(from, to, end - first);
    if (end - first > shortRun) cells.fill(to, first, end);
    else for (let index = first; index < end; index++) cells[index] = to;
  }

  #fill(region: Region, state: number): void {
    const { start, count, stride, rows } = this.#inCells(region);
    for (let row = 0; row < rows; row++) {
      const end = start + row * stride + count;
      for (let cell = end - count; cell < end; cell++)
        if (this.#cells[cell] !== state) this.#change(cell, cell + 1, this.#cells[cell], state);
    }
  }
}

/**
 * A shadow of `words` words, uninitialised.
 * @param rules - settings from the memory model, and the callback
 * @throws RequestError from its methods for a region that is not within the memory
 */
export function createShadowMemory(words: number, rules: ShadowRules = {}): ShadowMemory {
  return new StateShadow(words, rules);
}
