import type { ClusterRun, RunningCluster } from '../../machine/index.js';

/** Clusters that have begun and not ended, at most. */
const mostResident = 256;
/** Steps after which a cluster lets others go on although it gets on. */
const turn = 2 ** 18;
/** Steps of all together in which none does more than poll, after which none ever will. */
const mostPolls = 2 ** 18;

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
}

/** A cluster that others run in front of. */
interface Waiting {
  readonly number: number;
  readonly cluster: RunningCluster;
  readonly registers: Uint8Array;
}

/**
 * Runs the clusters of a grid: one after another, in the order of the grid, each to its end; but one that only polls, or
 * has had a long turn, lets those after it start, and goes on after them. So a CTA may wait for one that is later in the
 * grid, as for all of them at a barrier of the grid. Up to 256 clusters are there at a time, more than
 * a GPU promises. Where all poll, and none has done anything else for 262,144 steps, the kernel has no end: that is a finding of each.
 */
export function runResidentClusters(clusters: ResidentClusters): void {
  const { next, start, saveRegisters, restoreRegisters, end } = clusters;
  const waiting: Waiting[] = [];
  let idle = 0;
  for (;;) {
    const number = waiting.length < mostResident ? next() : null;
    const resumed = number === null ? waiting.shift() : undefined;
    if (number === null && resumed === undefined) return;
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
