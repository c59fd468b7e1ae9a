import {
  type MachineOptions,
  type MachineRequest,
  modelWithProgram,
  prepareMachine,
} from './request.js';
import {
  type ExponentialSplit,
  type KernelModel,
  kernelModels,
  type ProgramClusterRun,
  type RescaleTraffic,
} from '../../../kernels/index.js';
import {
  type CtaCounters,
  type Finding,
  roofline,
  type Roofline,
  sumOfCounters,
  type TraceEvent,
} from '../../machine/index.js';
import { allocateStorage, formats, patternsOf } from '../../formats/index.js';
import type { Problem, Tensor } from '../../problem/index.js';
import { secondsSince } from '../audit/index.js';
import { emulateDocument, type HashedFile } from '../emulate.js';

/** A finding, and the number of clusters with it. */
export interface ClusterFinding extends Finding {
  /** The first cluster with the finding. */
  readonly cluster: number;
  readonly clusters: number;
}

/** The combined results of the clusters of a run. */
export interface MachineResults {
  readonly isComplete: boolean;
  readonly findings: readonly ClusterFinding[];
  readonly steps: number;
  /** Clocks of the longest cluster; null when the schedule is not timed. */
  readonly clocks: number | null;
  readonly counters: CtaCounters;
  readonly exponentials: ExponentialSplit;
  readonly rescales: RescaleTraffic;
  readonly roofline: Roofline;
  /** The rates' evidence, a line each. */
  readonly rateEvidence: readonly string[];
}

/** Gathers the runs of the clusters. */
interface MachineGatherer {
  readonly add: (run: ProgramClusterRun) => void;
  readonly results: () => MachineResults;
}

/** A gatherer without runs; it keeps one sum of counters, whatever the number of clusters. */
function createMachineGatherer({ program, schedule }: MachineRequest): MachineGatherer {
  const { rates } = program;
  const findings = new Map<string, ClusterFinding>();
  let counters = sumOfCounters([]);
  let [steps, clocks, isComplete] = [0, 0, true];
  return {
    add: (run) => {
      counters = sumOfCounters([counters, ...run.counters]);
      steps += run.steps;
      clocks = Math.max(clocks, run.clocks);
      isComplete &&= run.isComplete;
      for (const finding of run.findings) {
        const key = `${finding.kind} ${finding.message}`;
        const { cluster, count, clusters } = findings.get(key) ?? {
          cluster: run.cluster,
          count: 0,
          clusters: 0,
        };
        const first = findings.get(key) ?? finding;
        findings.set(key, {
          ...first,
          cluster,
          clusters: clusters + 1,
          count: count + finding.count,
        });
      }
    },
    results: () => ({
      isComplete,
      findings: [...findings.values()],
      steps,
      counters,
      clocks: schedule.isTimed ? clocks : null,
      exponentials: program.exponentials(counters),
      rescales: program.rescales(counters),
      roofline: roofline(counters, rates),
      rateEvidence: rates.evidence,
    }),
  };
}

/** A problem for a kernel's program to compute on the emulated machine. */
export interface EmulateMachineRequest {
  readonly problem: Problem;
  /** The model's name. */
  readonly model: string;
  /** The model's settings as text, by key. */
  readonly settings: ReadonlyMap<string, string>;
  readonly options: MachineOptions;
  /** The available kernel models; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** `performance.now()` when the work began; default: now. */
  readonly start?: number | undefined;
}

/** Runs the clusters of a program, and receives its events meanwhile. */
export interface ClusterRunner {
  /** Receives the events of the cluster that runs. */
  readonly trace: (event: TraceEvent) => void;
  /** Runs every cluster, and hands each on. */
  readonly runAll: (
    request: MachineRequest,
    done: (run: ProgramClusterRun) => void,
  ) => Promise<void>;
}

/** The results of a program on a problem, on the machine. */
export interface EmulateMachineResult {
  readonly request: MachineRequest;
  readonly results: MachineResults;
  readonly out: Tensor;
  readonly lse: Tensor;
  /** The model's name and its settings by key. */
  readonly emulation: {
    readonly model: string;
    readonly settings: Readonly<Record<string, unknown>>;
  };
  readonly machine: MachineSettings;
  /** The evidence behind arithmetic, execution and rates, a line each. */
  readonly evidence: readonly string[];
  readonly seconds: number;
}

/** The program's outputs, of the rank of the problem's Q. */
function outputsOf(problem: Problem, { program }: MachineRequest): { out: Tensor; lse: Tensor } {
  const { outFormat, shape, out: patterns, lse: bits } = program;
  const format = formats[outFormat];
  const out = allocateStorage(format, patterns.length);
  patternsOf(out, format).set(patterns);
  const rowShape = problem.q.shape.slice(0, -1);
  const lse = new Float32Array(bits.buffer, bits.byteOffset, bits.length);
  return {
    out: { format: outFormat, shape: [...rowShape, shape.vDim], data: out },
    lse: { format: 'fp32', shape: rowShape, data: lse },
  };
}

/** Settings of a run, for its document and the notes of its outputs. */
function machineSettings({ program, schedule, races, mutant }: MachineRequest) {
  return {
    ctas: program.ctas,
    clusters: program.clusters,
    schedule: schedule.name,
    model: program.model.name,
    races,
    isaFences: program.isaFences,
    mutant: mutant?.id ?? null,
  };
}

/** Settings of a run. */
type MachineSettings = ReturnType<typeof machineSettings>;

/**
 * Runs a kernel's program on the emulated machine.
 * @param runner runs the clusters; null to run them here, untraced
 * @param progress called with the share of the whole, from 0 to 1
 * @throws RequestError for problems that the program does not run, and for unknown names
 */
export async function emulateOnMachine(
  { problem, model: name, settings, options, models = kernelModels, start }: EmulateMachineRequest,
  runner: ClusterRunner | null = null,
  progress: (share: number) => void = () => undefined,
): Promise<EmulateMachineResult> {
  const began = start ?? performance.now();
  const { model, kernel } = await modelWithProgram(name, models);
  const request = prepareMachine(kernel, problem, settings, options, runner?.trace);
  const gatherer = createMachineGatherer(request);
  const { clusters, run } = request.program;
  let done = 0;
  const settle = (cluster: ProgramClusterRun): void => {
    gatherer.add(cluster);
    progress(++done / clusters);
  };
  if (runner !== null) await runner.runAll(request, settle);
  else for (let cluster = 0; cluster < clusters; cluster++) settle(run(cluster));
  const results = gatherer.results();
  const prepared = model.prepare(problem, settings);
  return {
    request,
    results,
    ...outputsOf(problem, request),
    emulation: { model: name, settings: prepared.settings },
    machine: machineSettings(request),
    evidence: [...prepared.evidence, ...request.evidence, ...results.rateEvidence],
    seconds: secondsSince(began),
  };
}

/**
 * The JSON document of a run on the machine.
 * @param written the files that outputs and trace were written to; null for none
 */
export function machineDocument(
  version: string,
  problem: HashedFile,
  result: EmulateMachineResult,
  written: { readonly saved: string | null; readonly trace: string | null },
): object {
  const { machine, evidence, results } = result;
  const { isComplete, findings, steps, clocks, counters, roofline, exponentials, rescales } =
    results;
  return {
    ...emulateDocument(version, problem, result),
    machine,
    isComplete,
    findings,
    steps,
    clocks,
    counters,
    roofline,
    exponentials,
    rescales,
    evidence,
    ...written,
  };
}
