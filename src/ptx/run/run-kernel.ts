import {
  createGridOrder,
  mergeDependences,
  mostRegisters,
  startCluster,
  sumOfCounters,
  type ClusterRun,
  type CtaCounters,
  type DependenceListener,
  type Finding,
  type GlobalFootprint,
  type RunningCluster,
  type RunOptions,
  type ScheduleDependence,
  type TraceEvent,
} from '../../machine/index.js';
import type { Program } from '../program/index.js';
import {
  allocateShared,
  type Extents,
  type KernelLaunch,
  volume,
  warpLanes,
  warpProgram,
  type WatchedStop,
} from './cluster-warps.js';
import { createExecutable, type ExecutableProgram } from './executable.js';
import { createFindingList, type ListedFindings } from './finding-list.js';
import { countExecutions, type ExecutionCounts } from './execution-counts.js';
import { type ClusterPlan, runResidentClusters, createLaunchQueue } from './resident-clusters.js';
import { turnTakingScheduler } from './turn-taking.js';

/** Maximum number of warps of a grid whose accesses are compared with one another. */
const mostComparedWarps = 2048;

/** Options for running a kernel. */
export interface KernelOptions extends Omit<RunOptions, 'scheduler' | 'trace'> {
  /** A new scheduler for a cluster, by its number in the order of the grid. Default: in order, with turns. */
  readonly scheduler?: (cluster: number) => NonNullable<RunOptions['scheduler']>;
  /** Called before a warp executes a line that the program watches. */
  readonly onWatched?: (stop: WatchedStop) => void;
  /** Called with the events of a cluster, by its number in the order of the grid. */
  readonly trace?: (cluster: number, event: TraceEvent) => void;
  /** See `ResidentClusters`. */
  readonly mostPolls?: number;
  /** Record of the accesses to global memory, if races are looked for; default none. */
  readonly footprint?: GlobalFootprint | null;
  /** The steps that come first, before the clusters run as usual; default none. */
  readonly plan?: ClusterPlan;
  /** Called with the dependences on the schedule. */
  readonly onDependence?: DependenceListener;
  /** Called with the number of clusters that have run, and the number of all. */
  readonly progress?: (done: number, all: number) => void;
  /**
   * The numbers of all clusters in the order in which they start, for this number of clusters; default: the order of
   * the grid.
   */
  readonly starts?: (clusters: number) => readonly number[];
  /** Whether a cluster of the grid runs, by its number in the order of the grid; default all. */
  readonly runs?: (cluster: number) => boolean;
  /** Whether the findings of a cluster are enough, so that the clusters after it do not run; default never. */
  readonly isEnough?: (findings: readonly Finding[]) => boolean;
  /** The launch's program, compiled for a cluster's warps; default: it is compiled at the start of the run. */
  readonly executable?: ExecutableProgram;
}

/** The result of running a kernel. */
export interface KernelRun extends ListedFindings {
  readonly counts: ExecutionCounts;
  /** The machine's counters, of all CTAs together. */
  readonly counters: CtaCounters;
  /** Whether all warps of all clusters reached their end. */
  readonly isComplete: boolean;
  /**
   * Whether races in global memory between clusters were looked for, if any were: only in grids of up to 2,048 warps,
   * since the cost grows with the grid.
   */
  readonly areCtasCompared: boolean;
  /**
   * Whether every schedule has the same order, values and end: each cluster's run speaks for all of its own
   * schedules (`ClusterRun.speaksForAllSchedules`), and their accesses to global memory were compared where there
   * are several clusters.
   */
  readonly speaksForAllSchedules: boolean;
  /** Unordered strong accesses whose values the schedule has decided: by their two places in the program. */
  readonly dependences: readonly ScheduleDependence[];
  /** Whether `areCommitsFenced` of `ClusterRun` holds in all clusters. */
  readonly areCommitsFenced: boolean;
  /** Whether it cancels launches of clusters that have not started: the schedule decides which are left. */
  readonly cancelsLaunches: boolean;
  /** Number of clusters that ran, and of steps of the machine; steps of the cluster that took most. */
  readonly clusters: number;
  readonly steps: number;
  readonly mostClusterSteps: number;
}

/** The warps of a cluster, those of all its CTAs together. */
export function clusterWarps({ block, cluster }: Pick<KernelLaunch, 'block' | 'cluster'>): number {
  return volume(cluster) * Math.ceil(volume(block) / warpLanes);
}

/** The position in the grid of a number in its order: x first. */
function placeOf(number: number, [width, height]: Extents): Extents {
  return [
    number % width,
    Math.floor(number / width) % height,
    Math.floor(number / (width * height)),
  ];
}

/**
 * Number of registers that each thread of a CTA starts with, where the text states it: by `.maxnreg`, or as many as exist where it
 * states the number of CTAs of an SM. Source: PTX ISA, `setmaxnreg` ("valid value of maximum number of per-thread registers").
 */
function registersPerThread({ directives }: Program, threads: number): number | undefined {
  const [most] = directives.get('maxnreg') ?? [];
  const [ctas] = directives.get('minnctapersm') ?? [];
  if (most === undefined && ctas === undefined) return undefined;
  return Math.min(most ?? Infinity, ctas === undefined ? Infinity : mostRegisters(threads * ctas));
}

/**
 * Runs a kernel: one cluster of the grid after the other, in the order of the grid or that of `starts`, side by side where they
 * wait for one another (`runResidentClusters`). A cluster that cancels launches (`clusterlaunchcontrol`) gets all clusters that
 * have not started.
 */
export function runKernel(launch: KernelLaunch, options: KernelOptions = {}): KernelRun {
  const { grid, cluster, block, program } = launch;
  const warps = Math.ceil(volume(block) / warpLanes);
  const ctas = volume(cluster);
  const {
    runs = () => true,
    starts,
    isEnough = () => false,
    scheduler = turnTakingScheduler,
    executable = createExecutable(program, clusterWarps(launch)),
    onWatched = () => undefined,
    progress = () => undefined,
    trace,
    plan,
    mostPolls,
    footprint = null,
    ...machineOptions
  } = options;
  const counted = {
    executions: new Float64Array(executable.count),
    lanes: new Float64Array(executable.count),
  };
  const findings = createFindingList();
  let counters = sumOfCounters([]);
  let dependences: readonly ScheduleDependence[] = [];
  let [isComplete, speaksForAll, areCommitsFenced] = [true, true, true];
  let [ran, steps, most] = [0, 0, 0];
  const clusters = grid.map((extent, axis) => extent / cluster[axis]) as unknown as Extents;
  const areCtasCompared = volume(grid) * warps <= mostComparedWarps;
  const newOrder = () => createGridOrder(options.model, options.onDependence, footprint);
  const whole = areCtasCompared ? newOrder() : null;
  // A cluster that is not compared with others has an order of its own, even where its accesses are recorded.
  const order = () => ((whole ?? footprint) === null ? {} : { grid: whole ?? newOrder() });
  const firstCta = (number: number) =>
    placeOf(number, clusters).map((at, axis) => at * cluster[axis]) as unknown as Extents;
  const queue = createLaunchQueue(volume(clusters), runs, starts?.(volume(clusters)) ?? null);
  function start(number: number): RunningCluster {
    const first = firstCta(number);
    const ctaOf = (rank: number): Extents => {
      const offset = placeOf(rank, cluster);
      return first.map((one, axis) => one + offset[axis]) as unknown as Extents;
    };
    return startCluster(
      {
        ctas: ctas as 1 | 2,
        warps,
        registersPerThread: registersPerThread(program, volume(block)),
        memory: launch.memory,
        cancelLaunch: () => {
          const cancelled = queue.cancel();
          return cancelled === null ? null : firstCta(cancelled);
        },
        ...(volume(grid) === ctas ? {} : { ctaName: (rank) => `CTA (${ctaOf(rank).join(', ')})` }),
        allocate: (shared) => allocateShared(launch, shared),
        program: ({ cta, warp }) => {
          const at = { cta: ctaOf(cta), rank: cta, warp, warps };
          return warpProgram(launch, executable, { ...counted, onWatched }, at);
        },
      },
      {
        ...machineOptions,
        ...order(),
        ...(trace === undefined ? {} : { trace: (event) => trace(number, event) }),
        scheduler: scheduler(number),
      },
    );
  }
  function end(run: ClusterRun, number: number): boolean {
    findings.add(run.findings, number);
    counters = sumOfCounters([counters, ...run.counters]);
    isComplete &&= run.isComplete;
    speaksForAll &&= run.speaksForAllSchedules;
    areCommitsFenced &&= run.areCommitsFenced;
    // Clusters that are compared share their dependences, and the last one has them all.
    dependences = areCtasCompared
      ? run.dependences
      : mergeDependences([dependences, run.dependences]);
    steps += run.steps;
    most = Math.max(most, run.steps);
    progress(++ran, volume(clusters));
    return !isEnough(run.findings);
  }
  const { saveRegisters, restoreRegisters } = executable;
  runResidentClusters({
    next: queue.start,
    start,
    saveRegisters,
    restoreRegisters,
    end,
    plan,
    mostPolls,
  });
  return {
    ...findings.list(),
    counts: countExecutions(executable, counted),
    counters,
    isComplete,
    areCtasCompared,
    dependences,
    areCommitsFenced,
    cancelsLaunches: queue.hasBeenAsked(),
    speaksForAllSchedules: speaksForAll && (areCtasCompared || ran === 1) && !queue.hasBeenAsked(),
    clusters: ran,
    steps,
    mostClusterSteps: most,
  };
}
