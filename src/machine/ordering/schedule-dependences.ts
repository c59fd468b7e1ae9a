import type { Stamp } from './accesses.js';
import type { FindingAccess } from './finding.js';

/**
 * Two strong accesses to one word in no order, one of them a write: they are no race, but the schedule decides which
 * comes first, and so the values that they give.
 */
export interface ScheduleDependence {
  /** In the order in which they came. */
  readonly accesses: readonly [FindingAccess, FindingAccess];
  /** Number of pairs of accesses at these places of the program. */
  readonly count: number;
}

/**
 * A step of a cluster, which is named by a CTA of it, by its number in the grid; without one it is the cluster that runs
 * now.
 */
export interface ClusterStep {
  readonly cta: number | undefined;
  readonly step: number;
}

/**
 * Called at a step that the schedule might have taken before an earlier one with which it is in no order, with the earlier one:
 * the step may have another result then.
 */
export type DependenceListener = (earlier: ClusterStep) => void;

/** Gathers dependences: those at the same two places are one. */
export interface ScheduleDependences {
  readonly add: (earlier: Stamp, later: Stamp) => void;
  readonly list: () => readonly ScheduleDependence[];
}

/** The most different dependences that are kept. */
const mostDependences = 100;

/** The dependences of a run, none at first. */
export function createScheduleDependences(): ScheduleDependences {
  const found = new Map<string, { accesses: ScheduleDependence['accesses']; count: number }>();
  const accessOf = ({ who, site, step }: Stamp): FindingAccess => ({ who, site, step });
  let last: readonly Stamp[] = [];
  return {
    add: (earlier, later) => {
      // The same pair comes again for each word of one access.
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
