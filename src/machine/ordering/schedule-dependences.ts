import type { Stamp } from './accesses.js';
import type { FindingAccess } from './finding.js';

/**
 * Two strong accesses to one word in no order, of which one writes: they are no race, but which comes first the schedule
 * decides, and so what they give.
 */
export interface ScheduleDependence {
  /** In the order in which they came. */
  readonly accesses: readonly [FindingAccess, FindingAccess];
  /** How many pairs of accesses at these places of the program there were. */
  readonly count: number;
}

/** A step of a cluster: of that with this CTA, by its number in the grid; of the one that runs now where there is none. */
export interface ClusterStep {
  readonly cta: number | undefined;
  readonly step: number;
}

/**
 * Told, at a step that the schedule might have had before an earlier one with which it is in no order, of the earlier one: it may
 * give something else then.
 */
export type DependenceListener = (earlier: ClusterStep) => void;

/** Gathers dependences: those at the same two places are one. */
export interface ScheduleDependences {
  readonly add: (earlier: Stamp, later: Stamp) => void;
  readonly list: () => readonly ScheduleDependence[];
}

/** The most different ones that are kept. */
const mostDependences = 100;

/** No dependence yet. */
export function createScheduleDependences(): ScheduleDependences {
  const found = new Map<string, { accesses: ScheduleDependence['accesses']; count: number }>();
  const accessOf = ({ who, site, step }: Stamp): FindingAccess => ({ who, site, step });
  let last: readonly Stamp[] = [];
  return {
    add: (earlier, later) => {
      // Word after word of one access.
      if (last[0] === earlier && last[1] === later) return;
      last = [earlier, later];
      const pair = [accessOf(earlier), accessOf(later)] as const;
      const key = pair.map(({ site }) => site).join('\n');
      const known = found.get(key);
      if (known !== undefined) known.count++;
      else if (found.size < mostDependences) found.set(key, { accesses: pair, count: 1 });
    },
    list: () => [...found.values()],
  };
}

/** Dependences of several clusters, those at the same two places as one. */
export function mergeDependences(
  lists: readonly (readonly ScheduleDependence[])[],
): readonly ScheduleDependence[] {
  const merged = new Map<string, ScheduleDependence>();
  for (const one of lists.flat()) {
    const key = one.accesses.map(({ site }) => site).join('\n');
    const known = merged.get(key);
    merged.set(key, known === undefined ? one : { ...known, count: known.count + one.count });
  }
  return [...merged.values()];
}
