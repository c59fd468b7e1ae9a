import type { AccessClocks, Stamp } from './accesses.js';
import { bytesOfWord, type Region } from './region.js';
import type { ShadowRules } from './access-rules.js';
import { createShadowMemory, type ShadowMemory } from './shadow-memory.js';
import type { Conflict } from './shadow-states.js';

/** Words of a page. */
const pageWords = 2 ** 14;

/**
 * A shadow of global memory: pages of {@link ShadowMemory}, each made when it is first accessed. Its words have
 * contents from the start, since the memory itself knows which bytes nobody has written; and a write over what
 * nobody has read is nothing that matters there, since a host may read it after the launch.
 */
export interface GlobalShadow {
  /** @param region with addresses; the first words of its conflicts are addresses of words */
  readonly access: (
    kind: 'read' | 'write',
    region: Region,
    stamp: Stamp,
    clocks: AccessClocks,
  ) => readonly Conflict[];
}

/** A shadow of global memory that nobody has accessed. */
export function createGlobalShadow(rules: ShadowRules): GlobalShadow {
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
    access: (kind, { unit = 'word', start, count, stride = 0, rows = 1 }, stamp, clocks) => {
      const pageCells = unit === 'byte' ? pageWords * bytesOfWord : pageWords;
      const conflicts: Conflict[] = [];
      const visit = (page: number, region: Region): void => {
        for (const conflict of pageOf(page)[kind](region, stamp, clocks))
          if (conflict.kind !== 'overwritten-unread')
            conflicts.push({ ...conflict, firstWord: page * pageWords + conflict.firstWord });
      };
      const last = start + (rows - 1) * stride + count - 1;
      const page = Math.floor(start / pageCells);
      if (Math.floor(last / pageCells) === page)
        visit(page, { unit, start: start - page * pageCells, count, stride, rows });
      else
        for (let row = 0; row < rows; row++) {
          const end = start + row * stride + count;
          for (let first = end - count; first < end;) {
            const at = Math.floor(first / pageCells);
            const part = Math.min(end, (at + 1) * pageCells) - first;
            visit(at, { unit, start: first - at * pageCells, count: part });
            first += part;
          }
        }
      return conflicts;
    },
  };
}
