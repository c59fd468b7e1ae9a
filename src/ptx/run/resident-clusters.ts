import type { ClusterRun, RunningCluster, Step } from '../../machine/index.js';

/** Clusters that have begun and not ended, at most. */
const mostResident = 256;
/** Steps after which a cluster lets others go on although it gets on. */
const turn = 2 ** 18;
/** The steps that a grid takes first. */
export interface ClusterPlan {
  /** The cluster of the step that is planned next; null where no more are. */
  readonly cluster: () => number | null;
  /** Whether this is the step that is planned next. */
  readonly isNext: (step: Step) => boolean;
  /** The planned step cannot be taken, and is left out. */
  readonly skip: () => void;
}

/** The clusters of a grid, and the registers that they have in common. */
export interface ResidentClusters {
  /** The number of the next one that starts; null where none is left. */
  readonly next: () => number | null;
  /** Starts one. */
  readonly start: (number: number) => RunningCluster;
  /** A copy of the registers of the cluster that runs, and how another gets back its own. */
  readonly saveRegisters: () => Uint8Array;
  readonly restoreRegisters: (saved: Uint8Array) => void;
  /** Takes what came of one; whether the others are to go on. */
  readonly end: (run: ClusterRun, number: number) => boolean;
  /** Steps of all together in which none does more than poll, after which none ever will; default 262,144. */
  readonly mostPolls?: number | undefined;
  /** The steps that come first; default none. The scheduler of each cluster takes the planned one where it is asked. */
  readonly plan?: ClusterPlan | undefined;
}

/** A cluster that others run in front of. */
interface Waiting {
  readonly number: number;
  readonly cluster: RunningCluster;
  readonly registers: Uint8Array;
}

/**
 * Takes the planned steps. Clusters start in the order of the grid, so that those before one that is planned are there as well.
 *
 * @returns the clusters that have not ended, that of the last step first; null where the others are not to go on
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
 * Runs the clusters of a grid: one after another, in the order of the grid, each to its end; but one that only polls, or
 * has had a long turn, lets those after it start, and goes on after them. So a CTA may wait for one that is later in the
 * grid, as for all of them at a barrier of the grid. Up to 256 clusters are there at a time, more than
 * a GPU promises. Where all poll, and none has done anything else for `mostPolls` steps, the kernel has no end: that is a finding of each.
 */
export function runResidentClusters(clusters: ResidentClusters): void {
  const { next, start, saveRegisters, restoreRegisters, end, plan, mostPolls = 2 ** 18 } = clusters;
  const waiting = plan === undefined ? [] : runPlanned(clusters, plan);
  if (waiting === null) return;
  // What the plan has begun goes on before others start.
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
    // Those after them would poll as well: what they wait for is still there.
    return;
  }
}
