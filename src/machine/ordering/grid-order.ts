import type { ShadowRules } from './access-conflicts.js';
import type { AccessClocks, Stamp } from './accesses.js';
import { createChains, type Chains } from './clock.js';
import { memoryModels, type MemoryModel } from './memory-model.js';
import { bytesOfWord, type Region } from './region.js';
import {
  createScheduleDependences,
  type DependenceListener,
  type ScheduleDependences,
} from './schedule-dependences.js';
import { createShadowMemory, type ShadowMemory } from './shadow-memory.js';
import type { Conflict } from './shadow-states.js';
import { createSynchronisation, type Synchronisation } from './synchronisation.js';

const pageWords = 2 ** 14;

/**
 * A shadow of global memory: pages of {@link ShadowMemory}, each made when it is first accessed. Its words have
 * contents from the start, since the memory itself knows which bytes nobody has written; and an overwrite of
 * unread words is not reported there, since a host may read them after the launch.
 */
interface GlobalShadow {
  /** @param region with addresses; the first words of its conflicts are addresses of words */
  readonly access: (
    kind: 'read' | 'write',
    region: Region,
    stamp: Stamp,
    clocks: AccessClocks,
  ) => readonly Conflict[];
}

/** Words of global memory that have been read (1) and written (2), by page, one byte a word. */
export type GlobalFootprint = Map<number, Uint8Array>;

const marks = { read: 1, write: 2 } as const;

/** Whether one has written a word that the other has read or written. */
export function footprintsMeet(one: GlobalFootprint, other: GlobalFootprint): boolean {
  for (const [page, words] of one) {
    const others = other.get(page);
    if (others === undefined) continue;
    for (let i = 0; i < words.length; i++)
      if (words[i] !== 0 && others[i] !== 0 && ((words[i] | others[i]) & marks.write) !== 0)
        return true;
  }
  return false;
}

/** Calls back for each run of written words, with the address of its first byte and its number of bytes. */
export function forEachWritten(
  footprint: GlobalFootprint,
  visit: (address: number, bytes: number) => void,
): void {
  for (const [page, words] of footprint)
    for (let i = 0; i < words.length; i++) {
      const first = i;
      while (i < words.length && (words[i] & marks.write) !== 0) i++;
      if (i > first) visit((page * pageWords + first) * bytesOfWord, (i - first) * bytesOfWord);
    }
}

/** Adds an access of cells of a page to a footprint. */
function mark(
  footprint: GlobalFootprint,
  kind: 'read' | 'write',
  page: number,
  { unit, start, count, stride = 0, rows = 1 }: Region,
): void {
  let words = footprint.get(page);
  if (words === undefined) footprint.set(page, (words = new Uint8Array(pageWords)));
  const cells = unit === 'byte' ? bytesOfWord : 1;
  for (let row = 0; row < rows; row++) {
    const first = start + row * stride;
    for (let word = Math.floor(first / cells); word * cells < first + count; word++)
      words[word] |= marks[kind];
  }
}

/** Calls back for the parts of a region in each page; a region within one page is one part. */
function visitPages(
  { unit = 'word', start, count, stride = 0, rows = 1 }: Region,
  visit: (page: number, part: Region) => void,
): void {
  const pageCells = unit === 'byte' ? pageWords * bytesOfWord : pageWords;
  const last = start + (rows - 1) * stride + count - 1;
  const page = Math.floor(start / pageCells);
  if (Math.floor(last / pageCells) === page) {
    visit(page, { unit, start: start - page * pageCells, count, stride, rows });
    return;
  }
  for (let row = 0; row < rows; row++) {
    const end = start + row * stride + count;
    for (let first = end - count; first < end;) {
      const at = Math.floor(first / pageCells);
      const part = Math.min(end, (at + 1) * pageCells) - first;
      visit(at, { unit, start: first - at * pageCells, count: part });
      first += part;
    }
  }
}

/** A shadow of global memory that nobody has accessed. */
export function createGlobalShadow(
  rules: ShadowRules,
  footprint: GlobalFootprint | null = null,
): GlobalShadow {
  const pages = new Map<number, ShadowMemory>();

  function pageOf(page: number): ShadowMemory {
    let shadow = pages.get(page);
    if (shadow === undefined) {
      shadow = createShadowMemory(pageWords, rules);
      shadow.initialise({ start: 0, count: pageWords });
      pages.set(page, shadow);
    }
    return shadow;
  }

  return {
    access: (kind, region, stamp, clocks) => {
      const conflicts: Conflict[] = [];
      visitPages(region, (page, part) => {
        if (footprint !== null) mark(footprint, kind, page, part);
        for (const conflict of pageOf(page)[kind](part, stamp, clocks))
          if (conflict.kind !== 'overwritten-unread')
            conflicts.push({ ...conflict, firstWord: page * pageWords + conflict.firstWord });
      });
      return conflicts;
    },
  };
}

/**
 * Ordering state that the clusters of one grid share: global memory, and the releases there. The clusters may run
 * one after another: none knows another's events, unless it acquires what that one has released. Memory and time
 * grow with the warps of the grid.
 */
export interface GridOrder {
  readonly chains: Chains;
  readonly shadow: GlobalShadow;
  readonly released: Synchronisation;
  /** CTAs that have begun: the number of the next one. */
  ctas: number;
  /** Strong accesses in no order, whose values the schedule decided. */
  readonly dependences: ScheduleDependences;
  /** Called for such accesses, and for others whose order decides something. */
  readonly onDependence: DependenceListener;
}

/**
 * The order of a grid that has not run; by default under the model of practice.
 *
 * @param onDependence called for each outcome that the schedule decides; default nothing
 * @param footprint record of accesses to global memory; default none
 */
export function createGridOrder(
  { equalWrites }: Pick<MemoryModel, 'equalWrites'> = memoryModels.practice,
  onDependence: DependenceListener = () => undefined,
  footprint: GlobalFootprint | null = null,
): GridOrder {
  const dependences = createScheduleDependences();
  return {
    chains: createChains(),
    shadow: createGlobalShadow(
      {
        equalWrites,
        onUnorderedStrong: (earlier, later) => {
          dependences.add(earlier, later);
          onDependence(earlier);
        },
      },
      footprint,
    ),
    released: createSynchronisation(),
    ctas: 0,
    dependences,
    onDependence,
  };
}
