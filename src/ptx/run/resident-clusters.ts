import type { ClusterRun, RunningCluster, Step } from '../../machine/index.js';

/** The clusters of a grid that have not started, by their numbers in the order of the grid. */
interface LaunchQueue {
  /** Starts the next cluster; null where none is left. */
  readonly start: () => number | null;
  /** Cancels the launch of the next cluster, which then never starts; null where none is left. */
  readonly cancel: () => number | null;
  /** Whether `cancel` has been called: then the schedule decides which cluster does which work. */
  readonly hasBeenAsked: () => boolean;
  /** Number of clusters that have been started or cancelled. */
  readonly taken: () => number;
}

/**
 * The clusters of a grid before its first one starts.
 *
 * @param runs the clusters that run at all
 * @param order the numbers of all clusters in the order in which they start; null: ascending
 */
export function createLaunchQueue(
  clusters: number,
  runs: (cluster: number) => boolean,
  order: readonly number[] | null = null,
): LaunchQueue {
  let started = 0;
  let taken = 0;
  let isAsked = false;
  const start = (): number | null => {
    while (started < clusters) {
      const number = order === null ? started : order[started];
      started++;
      if (!runs(number)) continue;
      taken++;
      return number;
    }
    return null;
  };
  return {
    start,
    cancel: () => {
      isAsked = true;
      return start();
    },
    hasBeenAsked: () => isAsked,
    taken: () => taken,
  };
}

/** Maximum number of clusters that have started and not ended. */
const mostResident = 256;
/** Number of steps after which a cluster lets others go on although it makes progress. */
const turn = 2 ** 18;
/** The steps that a grid takes first. */
export interface ClusterPlan {
  /** The cluster of the next planned step; null where no more are planned. */
  readonly cluster: () => number | null;
  /** Whether this is the next planned step. */
  readonly isNext: (step: Step) => boolean;
  /** Skips the planned step, which cannot be taken. */
  readonly skip: () => void;
}

/** The clusters of a grid, and the registers that they share. */
export interface ResidentClusters {
  /** The number of the next cluster that starts; null where none is left. */
  readonly next: () => number | null;
  readonly start: (number: number) => RunningCluster;
  /** Copies the registers of the running cluster, and restores those of another. */
  readonly saveRegisters: () => Uint8Array;
  readonly restoreRegisters: (saved: Uint8Array) => void;
  /** Takes the result of a cluster; returns whether the others go on. */
  readonly end: (run: ClusterRun, number: number) => boolean;
  /**
   * Number of steps of all clusters together in which each only polls, after which the kernel is taken to have no end;
   * default 262,144.
   */
  readonly mostPolls?: number | undefined;
  /** The steps that come first; default none. The scheduler of each cluster takes the planned one where it is asked. */
  readonly plan?: ClusterPlan | undefined;
}

/** A cluster that has been started and lets others run first. */
interface Waiting {
  readonly number: number;
  readonly cluster: RunningCluster;
  readonly registers: Uint8Array;
}

/**
 * Takes the planned steps. Clusters start in the order of the grid, so clusters before a planned one are started as well.
 *
 * @returns the clusters that have not ended, that of the last step first; null where the others do not go on
 */
function runPlanned(clusters: ResidentClusters, plan: ClusterPlan): Waiting[] | null {
  const { next, start, saveRegisters, restoreRegisters, end } = clusters;
  const begun = new Map<number, Waiting>();
  const ended = new Set<number>();
  let current: number | null = null;
  function leave(): void {
    const left = current === null ? undefined : begun.get(current);
    if (left !== undefined) begun.set(left.number, { ...left, registers: saveRegisters() });
    current = null;
  }
  for (let planned; (planned = plan.cluster()) !== null;) {
    while (!begun.has(planned) && !ended.has(planned)) {
      leave();
      const number = next();
      if (number === null) break;
      begun.set(number, { number, cluster: start(number), registers: saveRegisters() });
    }
    const one = begun.get(planned);
    if (one === undefined || !one.cluster.canTake(plan.isNext)) {
      plan.skip();
      continue;
    }
    if (current !== planned) {
      leave();
      restoreRegisters(one.registers);
      current = planned;
    }
    const { hasEnded } = one.cluster.goOn(1);
    if (!hasEnded) continue;
    [current] = [null, begun.delete(planned), ended.add(planned)];
    if (!end(one.cluster.result(), planned)) return null;
  }
  const last = current;
  leave();
  return [...begun.values()].sort(
    (a, b) => Number(b.number === last) - Number(a.number === last) || a.number - b.number,
  );
}

/**
 * Runs the clusters of a grid: one after another, in the order of the grid, each to its end; but a cluster that only polls, or has had a
 * long turn, lets those after it start, and goes on after them. So a CTA may wait for a later one of the grid, or for all at a barrier of
 * the grid. Up to 256 clusters are resident at a time, more than a GPU promises. Where all poll, and none has done anything else for
 * `mostPolls` steps, the kernel has no end: that is a finding of each.
 */
export function runResidentClusters(clusters: ResidentClusters): void {
  const { next, start, saveRegisters, restoreRegisters, end, plan, mostPolls = 2 ** 18 } = clusters;
  const waiting = plan === undefined ? [] : runPlanned(clusters, plan);
  if (waiting === null) return;
  // Clusters that the plan has started go on before others start.
  let begun = waiting.length;
  let idle = 0;
  for (;;) {
    const number = begun-- <= 0 && waiting.length < mostResident ? next() : null;
    const resumed = number === null ? waiting.shift() : undefined;
    if (number === null && resumed === undefined) {
      if (begun < 0) return;
      continue;
    }
    if (resumed !== undefined) restoreRegisters(resumed.registers);
    const running = {
      number: number ?? resumed!.number,
      cluster: resumed?.cluster ?? start(number!),
    };
    const { hasEnded, hasProgressed, steps } = running.cluster.goOn(turn);
    idle = hasProgressed || hasEnded ? 0 : idle + steps;
    if (hasEnded) {
      if (!end(running.cluster.result(), running.number)) return;
    } else waiting.push({ ...running, registers: saveRegisters() });
    if (idle < mostPolls) continue;
    for (const { cluster, number: stuck } of waiting
      .splice(0)
      .sort((a, b) => a.number - b.number)) {
      cluster.giveUp(`${idle.toLocaleString('en-US')} steps of polling that nothing ends`);
      if (!end(cluster.result(), stuck)) return;
    }
    // Clusters after them would poll as well: the cause of their waiting remains.
    return;
  }
}
