import { createHash } from 'node:crypto';
import type { Architecture } from '../../hardware/index.js';
import {
  type Finding,
  findingWeight,
  type MemoryModel,
  memoryModels,
} from '../../machine/index.js';
import { type LaunchRun, runLaunch } from '../../ptx/run/index.js';
import { RequestError } from '../../request-error.js';
import { nearestName } from '../../words/index.js';
import { type DocumentHead, documentHead, secondsSince } from '../document-head.js';
import { findSchedule } from '../machine/request.js';
import { type LaunchPaths, type OpenedLaunch, openLaunch } from './open-launch.js';
import { compareWithRecorded, type RecordedComparison } from './recorded-results.js';

/** What is to be run, and how. */
export interface RunRequest extends LaunchPaths {
  /** Whether a mul and an add that an assembler may contract are one fma. */
  readonly contract: boolean;
  /** Whether races are looked for. */
  readonly races: boolean;
  /** A schedule's name; default: each warp in turn. */
  readonly schedule?: string | undefined;
  /** A memory model's name; default: `practice`. */
  readonly model?: string | undefined;
  /** The GPU whose arithmetic it is; default: that of the PTX's target. */
  readonly architecture?: string | undefined;
}

/** A tensor that the kernel was to write. */
export interface RunOutput {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
  readonly recorded: RecordedComparison | null;
}

/** A finding, and in how many clusters it was made. */
export interface LaunchFinding extends Finding {
  /** The first cluster that it was made in, and in how many it was. */
  readonly cluster: number;
  readonly clusters: number;
}

/** What came of a launch file. */
export interface RunResult {
  readonly opened: OpenedLaunch;
  readonly run: LaunchRun;
  readonly request: RunRequest;
  /** The schedule as it is called. */
  readonly schedule: string;
  readonly findings: readonly LaunchFinding[];
  readonly outputs: readonly RunOutput[];
  readonly seconds: number;
}

/** How the default schedule is called. */
const inTurns = 'in-turns';

const warpThreads = 32;

function modelNamed(name: string): MemoryModel {
  const models: Readonly<Record<string, MemoryModel>> = memoryModels;
  if (Object.hasOwn(models, name)) return models[name];
  const nearest = nearestName(name, Object.keys(models));
  throw new RequestError(
    `no memory model ${JSON.stringify(name)}; ${nearest === null ? `give ${Object.keys(models).join(', ')}` : `the nearest is ${nearest}`}`,
  );
}

const architectures: readonly Architecture[] = ['sm_80', 'sm_89', 'sm_90', 'sm_100', 'sm_103'];

function architectureNamed(name: string): Architecture {
  const known = architectures.find((one) => one === name);
  if (known !== undefined) return known;
  throw new RequestError(
    `no arithmetic of ${JSON.stringify(name)}; give ${architectures.join(', ')}`,
  );
}

/** Findings of all clusters, the same one once. */
function gathered(findings: LaunchRun['findings']): readonly LaunchFinding[] {
  const all = new Map<string, LaunchFinding>();
  for (const finding of findings) {
    const sites = finding.accesses.map(({ who, site }) => who + site);
    const key = [finding.kind, finding.message, ...sites].join('\n');
    const first = all.get(key) ?? { ...finding, clusters: 0, count: 0 };
    const { clusters, count } = first;
    all.set(key, { ...first, clusters: clusters + 1, count: count + finding.count });
  }
  return [...all.values()];
}

/**
 * Runs what a launch file starts, on the machine.
 *
 * @throws RequestError for what cannot be read or does not fit, and for everything in the kernel that is not supported
 */
export async function runLaunchFile(request: RunRequest): Promise<RunResult> {
  const start = performance.now();
  const { contract, races, schedule, model, architecture } = request;
  const opened = await openLaunch(request);
  const { launch, module, ptxPath, tensors } = opened;
  const warps = Math.ceil(launch.block.reduce((all, one) => all * one, 1) / warpThreads);
  const chosen =
    schedule === undefined || schedule === inTurns ? null : findSchedule(schedule, warps);
  let cluster = 0;
  const run = runLaunch(module, launch, {
    file: ptxPath,
    contract,
    races,
    ...(model === undefined ? {} : { model: modelNamed(model) }),
    ...(architecture === undefined ? {} : { architecture: architectureNamed(architecture) }),
    ...(chosen === null ? {} : { scheduler: () => chosen.create(cluster++) }),
  });
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
    request,
    schedule: chosen?.name ?? inTurns,
    findings: gathered(run.findings),
    outputs,
    seconds: secondsSince(start),
  };
}

/** Whether a run shows that something is wrong: a finding that is more than a hint, no end, or other results than recorded. */
export function hasFailed({ findings, run, outputs }: RunResult): boolean {
  return (
    !run.isComplete ||
    findings.some(({ kind }) => findingWeight(kind) !== 'hint') ||
    outputs.some(({ recorded }) => recorded !== null && recorded.differing > 0)
  );
}

/** The document of a run, for programs. */
export interface RunDocument extends DocumentHead<'run'> {
  readonly launch: {
    readonly path: string;
    readonly ptx: { readonly path: string; readonly sha256: string };
    readonly tensors: string;
    readonly entry: string;
    readonly grid: readonly number[];
    readonly block: readonly number[];
    readonly cluster: readonly number[];
    readonly dynamicSharedBytes: number;
  };
  readonly settings: {
    readonly schedule: string;
    readonly races: boolean;
    readonly contract: boolean;
    readonly model: string;
    readonly architecture: string;
  };
  readonly isComplete: boolean;
  readonly hasFailed: boolean;
  readonly findings: readonly LaunchFinding[];
  readonly outputs: readonly (Omit<RunOutput, 'bytes'> & { readonly sha256: string })[];
  readonly clusters: number;
  readonly steps: number;
  readonly contractions: LaunchRun['contractions'];
  /** Executions and lanes by instruction, and by line of the PTX. */
  readonly instructions: Readonly<Record<string, { executions: number; lanes: number }>>;
  readonly lines: Readonly<Record<string, { executions: number; lanes: number }>>;
}

const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');

/** A run as a document. */
export function runDocument(version: string, result: RunResult): RunDocument {
  const { opened, run, request, outputs, findings } = result;
  const { entry, grid, block, cluster, dynamicSharedBytes } = opened.launch;
  return {
    ...documentHead('run', version, result.seconds),
    launch: {
      path: opened.path,
      ptx: { path: opened.ptxPath, sha256: sha256(opened.ptx) },
      tensors: opened.tensorsPath,
      entry,
      grid,
      block,
      cluster,
      dynamicSharedBytes,
    },
    settings: {
      schedule: result.schedule,
      races: request.races,
      contract: request.contract,
      model: request.model ?? memoryModels.practice.name,
      architecture: run.architecture,
    },
    isComplete: run.isComplete,
    hasFailed: hasFailed(result),
    findings,
    outputs: outputs.map(({ name, dtype, shape, bytes, recorded }) => ({
      name,
      dtype,
      shape,
      sha256: sha256(bytes),
      recorded,
    })),
    clusters: run.clusters,
    steps: run.steps,
    contractions: run.contractions,
    instructions: Object.fromEntries(run.counts.byMnemonic),
    lines: Object.fromEntries([...run.counts.byLine].map(([line, count]) => [String(line), count])),
  };
}
