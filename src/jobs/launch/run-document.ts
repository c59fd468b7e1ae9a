import { createHash } from 'node:crypto';
import type { BreakStop, LaunchRun, RegisterValues } from '../../ptx/run/index.js';
import { type DocumentHead, documentHead } from '../audit/index.js';
import type { LaunchFinding } from './launch-findings.js';
import type { ExploredLaunch } from './explore-launch-file.js';
import type { RunOutput, RunResult } from './run-launch-file.js';
import { judgeRun, type RunVerdict } from './run-verdict.js';

/** Values of registers at a line. */
interface ReportedStop {
  readonly line: number;
  /** Number of the CTA in the grid, and of the warp in the CTA, from 0. */
  readonly cta: number;
  readonly warp: number;
  /** The lane; null for all lanes. */
  readonly lane: number | null;
  /** Number of times that the line was executed there so far, from 1. */
  readonly time: number;
  /** The lanes that execute it: bit l for lane l. */
  readonly lanes: number;
  readonly registers: readonly (Omit<RegisterValues, 'bits' | 'width'> & {
    readonly values: readonly string[];
  })[];
}

function reportedStop({ breakpoint, time, lanes, registers }: BreakStop): ReportedStop {
  const { line, cta, warp, lane } = breakpoint;
  return {
    line,
    cta,
    warp,
    lane,
    time,
    lanes: lanes >>> 0,
    registers: registers.map(({ name, type, isGuard, isLent, bits }) => ({
      name,
      type,
      isGuard,
      isLent,
      values: bits.map((value) => `0x${value.toString(16)}`),
    })),
  };
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
    /** The order in which the clusters of the grid started. */
    readonly starts: string;
    readonly races: boolean;
    readonly contract: boolean;
    readonly model: string;
    readonly architecture: string;
    /** What the architecture's arithmetic rests on. */
    readonly evidence: string;
  };
  /** Values of registers at the lines of --break, in the order of the run; as hexadecimal numbers. */
  readonly breaks: readonly ReportedStop[];
  readonly isComplete: boolean;
  /** Whether every schedule gives the same order, values and end. */
  readonly speaksForAllSchedules: boolean;
  /** Unordered strong accesses, whose values the schedule has decided. */
  readonly dependences: LaunchRun['dependences'];
  readonly verdict: RunVerdict;
  /** The verdict's, for readers of older documents. */
  readonly hasFailed: boolean;
  readonly findings: readonly LaunchFinding[];
  /** Number of further findings, of kinds that already list 1,000 at the same places of the program. */
  readonly unlistedFindings: number;
  readonly outputs: readonly (Omit<RunOutput, 'bytes'> & { readonly sha256: string })[];
  readonly clusters: number;
  readonly steps: number;
  readonly contractions: LaunchRun['contractions'];
  /** The work on each unit of an SM, with its clocks at full rate; and all counters of the machine. */
  readonly work: LaunchRun['work'];
  readonly counters: LaunchRun['counters'];
  /** Executions and lanes by instruction, and by line of the PTX. */
  readonly instructions: Readonly<Record<string, { executions: number; lanes: number }>>;
  readonly lines: Readonly<Record<string, { executions: number; lanes: number }>>;
}

const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');

/**
 * A run as a document.
 * @param explored the results of its schedules, if they were run
 */
export function runDocument(
  version: string,
  result: RunResult,
  explored: ExploredLaunch | null = null,
): RunDocument {
  const verdict = judgeRun(result, explored);
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
      starts: request.starts ?? 'ascending',
      races: request.races,
      contract: request.contract,
      model: result.model.name,
      architecture: run.architecture,
      evidence: result.evidence,
    },
    breaks: run.stops.map(reportedStop),
    isComplete: run.isComplete,
    speaksForAllSchedules: run.speaksForAllSchedules,
    dependences: run.dependences,
    verdict,
    hasFailed: !verdict.pass,
    findings,
    unlistedFindings: run.unlisted,
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
    work: run.work,
    counters: run.counters,
    instructions: Object.fromEntries(run.counts.byMnemonic),
    lines: Object.fromEntries([...run.counts.byLine].map(([line, count]) => [String(line), count])),
  };
}
