import {
  createGridOrder,
  mergeDependences,
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
import {
  type KernelLaunch,
  volume,
  warpLanes,
  warpProgram,
  type WatchedStop,
} from './cluster-warps.js';
import { createExecutable, type ExecutableProgram } from './executable.js';
import { createFindingList, type ListedFindings } from './finding-list.js';
import { countExecutions, type ExecutionCounts } from './execution-counts.js';
import { LaunchClusters } from './launch-clusters.js';
import { type ClusterPlan, runResidentClusters, createLaunchQueue } from './resident-clusters.js';
import { turnTakingScheduler } from './turn-taking.js';

/** Numbers of clusters in a run. */
export interface ClusterNumbers {
  readonly started: number;
  readonly ended: number;
}

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
  /** Whether the findings of a cluster that has ended are enough, so that no others go on or start; default never. */
  readonly isEnough?: (findings: readonly Finding[], clusters: ClusterNumbers) => boolean;
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

/** What the runs of clusters have shown so far. */
class RunSummary {
  ran = 0;
  steps = 0;
  mostClusterSteps = 0;
  counters = sumOfCounters([]);
  dependences: readonly ScheduleDependence[] = [];
  isComplete = true;
  speaksForAll = true;
  areCommitsFenced = true;
  readonly #findings = createFindingList();

  /** @param areCompared whether clusters share their dependences, so that the last one has them all */
  add(run: ClusterRun, number: number, areCompared: boolean): void {
    this.#findings.add(run.findings, number);
    this.counters = sumOfCounters([this.counters, ...run.counters]);
    this.isComplete &&= run.isComplete;
    this.speaksForAll &&= run.speaksForAllSchedules;
    this.areCommitsFenced &&= run.areCommitsFenced;
    this.dependences = areCompared
      ? run.dependences
      : mergeDependences([this.dependences, run.dependences]);
    this.steps += run.steps;
    this.mostClusterSteps = Math.max(this.mostClusterSteps, run.steps);
    this.ran++;
  }

  findings(): ListedFindings {
    return this.#findings.list();
  }
}

/** The order that each cluster runs in: one for all that are compared, else its own; empty where nothing is recorded. */
function clusterOrders(
  { model, onDependence }: KernelOptions,
  footprint: GlobalFootprint | null,
  areCompared: boolean,
): () => Pick<RunOptions, 'grid'> {
  const newOrder = () => createGridOrder(model, onDependence, footprint);
  const whole = areCompared ? newOrder() : null;
  // A cluster that is not compared with others has an order of its own, even where its accesses are recorded.
  return () => ((whole ?? footprint) === null ? {} : { grid: whole ?? newOrder() });
}

/**
 * Runs a kernel: one cluster of the grid after the other, in the order of the grid or that of `starts`, side by side where they
 * wait for one another (`runResidentClusters`). A cluster that cancels launches (`clusterlaunchcontrol`) gets all clusters that
 * have not started.
 */
export function runKernel(launch: KernelLaunch, options: KernelOptions = {}): KernelRun {
  const {
    runs = () => true,
    starts,
    isEnough = () => false,
    scheduler = turnTakingScheduler,
    executable = createExecutable(launch.program, clusterWarps(launch)),
    onWatched = () => undefined,
    progress = () => undefined,
    trace,
    plan,
    mostPolls,
    footprint = null,
    ...machineOptions
  } = options;
  const clusters = new LaunchClusters(launch);
  const { areCtasCompared } = clusters;
  const counted = {
    executions: new Float64Array(executable.count),
    lanes: new Float64Array(executable.count),
  };
  const summary = new RunSummary();
  const orderOf = clusterOrders(options, footprint, areCtasCompared);
  const queue = createLaunchQueue(clusters.count, runs, starts?.(clusters.count) ?? null);
  const start = (number: number): RunningCluster =>
    startCluster(
      clusters.launchOf(number, queue.cancel, (at) =>
        warpProgram(launch, executable, { ...counted, onWatched }, at),
      ),
      {
        ...machineOptions,
        ...orderOf(),
        ...(trace && { trace: (event) => trace(number, event) }),
        scheduler: scheduler(number),
      },
    );
  const end = (run: ClusterRun, number: number): boolean => {
    summary.add(run, number, areCtasCompared);
    progress(summary.ran, clusters.count);
    if (summary.ran === queue.taken()) executable.tracer?.clustersEnded();
    return !isEnough(run.findings, { started: queue.taken(), ended: summary.ran });
  };
  runResidentClusters({ ...executable, next: queue.start, start, end, plan, mostPolls });
  const cancelsLaunches = queue.hasBeenAsked();
  return {
    ...summary.findings(),
    counts: countExecutions(executable, counted),
    counters: summary.counters,
    isComplete: summary.isComplete,
    areCtasCompared,
    dependences: summary.dependences,
    areCommitsFenced: summary.areCommitsFenced,
    cancelsLaunches,
    speaksForAllSchedules:
      summary.speaksForAll && (areCtasCompared || summary.ran === 1) && !cancelsLaunches,
    clusters: summary.ran,
    steps: summary.steps,
    mostClusterSteps: summary.mostClusterSteps,
  };
}
