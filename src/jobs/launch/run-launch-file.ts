import {
  type Architecture,
  architectureEvidence,
  architectureNames,
} from '../../hardware/index.js';
import {
  memoryModels,
  randomOrder,
  type MemoryModel,
  type TraceEvent,
} from '../../machine/index.js';
import { exploredSchedule, holdsOf, runExplored, type Holds } from '../../ptx/explore/index.js';
import type { Launch } from '../../ptx/launch/index.js';
import {
  prepareLaunch,
  type Breakpoint,
  type LaneTracer,
  type LaunchOptions,
  type LaunchRun,
  type PreparedLaunch,
} from '../../ptx/run/index.js';
import { sourceLines } from '../../ptx/syntax/index.js';
import { RequestError } from '../../request-error.js';
import { secondsSince } from '../audit/index.js';
import { findMemoryModel, findSchedule } from '../machine/request.js';
import {
  gatherFindings,
  groupFindings,
  type FindingGroup,
  type LaunchFinding,
} from './launch-findings.js';
import { openLaunch, openTemplate, type LaunchPaths, type OpenedLaunch } from './open-launch.js';
import { compareWithRecorded, type RecordedComparison } from './recorded-results.js';
import { openOnProblem } from './tensors-beside.js';

/** The numbers of a grid's clusters in the order in which they start, from their number. */
type ClusterStarts = (clusters: number) => readonly number[];

const ascending: ClusterStarts = (clusters) => Array.from({ length: clusters }, (_, i) => i);

const mostSeed = 2 ** 32 - 1;

/**
 * The order of a name: `ascending`, `descending` or `random:<seed>`.
 * @throws RequestError for any other name, and for a bad seed
 */
export function findStarts(text: string): ClusterStarts {
  if (text === 'ascending') return ascending;
  if (text === 'descending') return (clusters) => [...ascending(clusters)].reverse();
  const [, seed] = /^random:(\d+)$/.exec(text) ?? [];
  if (seed !== undefined && Number(seed) <= mostSeed)
    return (clusters) => randomOrder(clusters, Number(seed));
  throw new RequestError(
    `--starts is ${JSON.stringify(text)}; give ascending, descending or random:<seed>, a whole number below 2^32`,
  );
}

/** The launch to run, and the settings of the run. */
export interface RunRequest extends LaunchPaths {
  /** The file of a problem to run a template on; `tensors` is ignored then. */
  readonly problem?: string | undefined;
  /** Whether to fuse a mul and an add that an assembler may contract. */
  readonly contract: boolean;
  /** Whether to detect races. */
  readonly races: boolean;
  /** Lines at which to read registers; default none. */
  readonly breaks?: readonly Breakpoint[] | undefined;
  /** A schedule's name; default: each warp in turn. */
  readonly schedule?: string | undefined;
  /** The order in which the clusters of the grid start, by its name; default: `ascending`. */
  readonly starts?: string | undefined;
  /** A memory model's name; default: `practice`. */
  readonly model?: string | undefined;
  /** The GPU whose arithmetic to emulate; default: that of the PTX's target. */
  readonly architecture?: string | undefined;
  /** Steps of a cluster after which its run is given up; default: the machine's. */
  readonly mostSteps?: number | undefined;
}

/** A tensor that the kernel had to write. */
export interface RunOutput {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  readonly recorded: RecordedComparison | null;
}

/** Follows a run, event by event. */
export interface LaunchTracer {
  /** Called before the first event: CTAs of a cluster, and whether times are clocks; else they are steps. */
  readonly begin: (about: {
    readonly ctas: number;
    readonly isTimed: boolean;
    readonly schedule: string;
  }) => void;
  /** Called for each event in a cluster, one cluster after the other. */
  readonly add: (cluster: number, event: TraceEvent) => void;
}

/** Who follows a run. */
export interface RunFollowers {
  /** Receives the events; default nobody. */
  readonly events?: LaunchTracer | null;
  /** Follows what the values of the launch stand for; default nobody. */
  readonly values?: LaneTracer;
}

/** A launch that is run in the usual way: races are looked for, and nothing follows or orders its clusters. */
export interface PlainRun {
  readonly launch: Launch;
  readonly prepared: PreparedLaunch;
  readonly options: LaunchOptions;
}

/** A run, the number of threads that it has taken, and the reason for that number, in a clause. */
export interface ThreadedRun {
  readonly run: LaunchRun;
  readonly threads: number;
  readonly why: string;
}

/** The result of a launch file. */
export interface RunResult extends ThreadedRun {
  readonly opened: OpenedLaunch;
  readonly request: RunRequest;
  /** The name of the schedule. */
  readonly schedule: string;
  readonly findings: readonly LaunchFinding[];
  /** The findings, by their kinds and the lines of the PTX. */
  readonly groups: readonly FindingGroup[];
  readonly model: MemoryModel;
  readonly outputs: readonly RunOutput[];
  /** What the arithmetic of the run's architecture rests on, in a line. */
  readonly evidence: string;
  readonly seconds: number;
}

/** The name of the default schedule. */
const inTurns = 'in-turns';

const warpThreads = 32;

function architectureNamed(name: string): Architecture {
  const known = architectureNames.find((one) => one === name);
  if (known !== undefined) return known;
  throw new RequestError(
    `no arithmetic of ${JSON.stringify(name)}; give ${architectureNames.join(', ')}`,
  );
}

/**
 * Reads the files that a request names.
 * @throws RequestError for files that cannot be read or do not fit
 */
export async function openRequest(request: RunRequest): Promise<OpenedLaunch> {
  const { problem } = request;
  if (problem === undefined) return openLaunch(request);
  const [launch] = await openOnProblem(await openTemplate(request), problem, () => 1);
  return launch;
}

/**
 * Options of a launch's run, and the name of its schedule.
 * @throws RequestError for unknown names
 */
export function launchOptions(
  { contract, races, schedule, starts, model, architecture, mostSteps }: RunRequest,
  { launch, ptxPath }: OpenedLaunch,
): { readonly schedule: string; readonly options: LaunchOptions } {
  const warps = Math.ceil(launch.block.reduce((all, one) => all * one, 1) / warpThreads);
  const isExplored = schedule !== undefined && holdsOf(schedule) !== null;
  const chosen =
    schedule === undefined || schedule === inTurns || isExplored
      ? null
      : findSchedule(schedule, warps);
  return {
    schedule: isExplored ? schedule : (chosen?.name ?? inTurns),
    options: {
      file: ptxPath,
      contract,
      races,
      ...(model === undefined ? {} : { model: findMemoryModel(model) }),
      ...(architecture === undefined ? {} : { architecture: architectureNamed(architecture) }),
      ...(mostSteps === undefined ? {} : { mostSteps }),
      ...(chosen === null ? {} : { scheduler: chosen.create }),
      ...(starts === undefined ? {} : { starts: findStarts(starts) }),
    },
  };
}

/** The reason that the clusters of a run have to run on one thread, in a clause; null for none. */
function whyTogether(
  { races, starts, breaks = [] }: RunRequest,
  schedule: string,
  tracer: LaunchTracer | null,
): string | null {
  if (!races) return 'where no races are looked for, nothing tells whether CTAs meet';
  if (schedule !== inTurns || starts !== undefined) return 'the order of the run was chosen';
  if (breaks.length > 0) return 'registers are read in the order of the run';
  return tracer === null ? null : 'events are followed in the order of the run';
}

/** Runs a launch on this thread. */
async function runHere({ prepared, options }: PlainRun): Promise<ThreadedRun> {
  return { run: prepared.run(options), threads: 1, why: 'no others are asked for' };
}

/**
 * Runs what a launch file starts, on the machine.
 *
 * @param progress called with the share of the clusters that have run
 * @param runPlain runs the launch if it is run in the usual way, on several threads as `runOnThreads` does, or on this
 * one, the default
 * @throws RequestError for files that cannot be read or do not fit, and for everything in the kernel that is not
 * supported
 */
export async function runLaunchFile(
  request: RunRequest,
  progress: (share: number) => void = () => undefined,
  followers: RunFollowers = {},
  runPlain: (plain: PlainRun) => Promise<ThreadedRun> = runHere,
): Promise<RunResult> {
  const start = performance.now();
  const opened = await openRequest(request);
  const result = await runOpened(opened, request, progress, followers, runPlain);
  return { ...result, seconds: secondsSince(start) };
}

/** As `runLaunchFile`, for a launch that is opened already: of the request its settings count. */
export async function runOpened(
  opened: OpenedLaunch,
  request: RunRequest,
  progress: (share: number) => void = () => undefined,
  { events: tracer = null, values }: RunFollowers = {},
  runPlain: (plain: PlainRun) => Promise<ThreadedRun> = runHere,
): Promise<RunResult> {
  const start = performance.now();
  const { contract, breaks = [] } = request;
  const { launch, module, tensors } = opened;
  const sources = sourceLines(module);
  const { schedule, options } = launchOptions(request, opened);
  const isTimed = options.scheduler?.(0).isTimed === true;
  const ctas = launch.cluster.reduce((all, one) => all * one, 1);
  tracer?.begin({ ctas, isTimed, schedule });
  const followed = {
    ...(tracer === null ? {} : { trace: tracer.add }),
    progress: (done: number, all: number) => progress(done / all),
  };
  const holds = holdsOf(schedule);
  const why = whyTogether(request, schedule, tracer);
  const prepareAll = () => prepareLaunch(module, launch, { ...options, breaks, tracer: values });
  const { run, ...ofThreads }: ThreadedRun =
    why === null
      ? await runPlain({ launch, prepared: prepareAll(), options: { ...options, ...followed } })
      : {
          run:
            holds === null
              ? prepareAll().run({ ...options, ...followed })
              : runExploredSchedule(opened, { ...options, breaks }, holds, followed),
          threads: 1,
          why,
        };
  const byName = new Map(launch.tensors.map((tensor) => [tensor.name, tensor]));
  const outputs = launch.outputs.flatMap(({ name }): readonly RunOutput[] => {
    const tensor = byName.get(name);
    const bytes = run.tensors.get(name);
    if (tensor === undefined || bytes === undefined) return [];
    const recorded = compareWithRecorded(tensor, bytes, tensors, contract);
    return [{ name, dtype: tensor.dtype, shape: tensor.shape, bytes, recorded }];
  });
  return {
    opened,
    run,
    ...ofThreads,
    request,
    schedule,
    findings: gatherFindings(run.findings, sources),
    groups: groupFindings(run.findings, sources),
    model: options.model ?? memoryModels.practice,
    outputs,
    evidence: architectureEvidence(run.architecture),
    seconds: secondsSince(start),
  };
}

/**
 * Runs a schedule that an exploration has named.
 * @throws RequestError for one that the kernel does not have
 */
function runExploredSchedule(
  { module, launch }: OpenedLaunch,
  options: LaunchOptions,
  holds: Holds,
  followed: Parameters<typeof runExplored>[4],
): LaunchRun {
  const { model } = options;
  const prepared = prepareLaunch(module, launch, options);
  const ctas = launch.cluster.reduce((all, one) => all * one, 1);
  try {
    return runExplored(prepared, ctas, holds, model === undefined ? {} : { model }, followed);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RequestError(
      `--schedule ${exploredSchedule(holds)}: ${error.message}; give a schedule that --schedules has printed for this launch`,
    );
  }
}
