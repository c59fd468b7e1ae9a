import {
  createGridOrder,
  runCluster,
  type Finding,
  type LaunchMemory,
  type RunOptions,
  type SharedMemory,
  type WarpProgram,
} from '../../machine/index.js';
import { RequestError } from '../../request-error.js';
import type { IssuingWarp } from '../instructions/index.js';
import type { Program, ThreadPlace } from '../program/index.js';
import { createExecutable, type ExecutableProgram } from './executable.js';
import { countExecutions, type ExecutionCounts } from './execution-counts.js';
import { setInitialRegisters } from './initial-registers.js';
import { createLoans } from './loans.js';
import { turnTakingScheduler } from './turn-taking.js';
import { runWarp, type RunningWarp } from './warp-run.js';

type Extents = readonly [number, number, number];

const warpLanes = 32;
/** The most warps of a grid whose accesses are compared with one another. */
const mostComparedWarps = 2048;

/** A kernel with what it is launched with. */
export interface KernelLaunch {
  readonly program: Program;
  /** CTAs of the grid, threads of a CTA, CTAs of a cluster: x, y, z each. */
  readonly grid: Extents;
  readonly block: Extents;
  readonly cluster: Extents;
  readonly dynamicSharedBytes: number;
  /** Parameters, and what is allocated in global and constant memory. */
  readonly memory: LaunchMemory;
  /** The tensor map at a generic address. */
  readonly tensorMapAt: IssuingWarp['tensorMapAt'];
}

/** How a kernel is run. */
export interface KernelOptions extends Omit<RunOptions, 'scheduler'> {
  /** Default: in order, with turns. */
  readonly scheduler?: () => NonNullable<RunOptions['scheduler']>;
  /** Whether a cluster of the grid runs, by its number in the order of the grid; default all. */
  readonly runs?: (cluster: number) => boolean;
}

/** What came of a kernel. */
export interface KernelRun {
  /** With the number of the cluster in whose run they were found. */
  readonly findings: readonly (Finding & { readonly cluster: number })[];
  readonly counts: ExecutionCounts;
  /** Whether all warps of all clusters came to their end. */
  readonly isComplete: boolean;
  /**
   * Whether races in global memory between clusters were looked for, if any were: in grids of up to 2,048 warps, since
   * what that takes grows with the grid.
   */
  readonly areCtasCompared: boolean;
  /** Clusters that ran, and steps of the machine. */
  readonly clusters: number;
  readonly steps: number;
}

const volume = ([x, y, z]: Extents) => x * y * z;

/** Where a number of the order of the grid stands: x first. */
function placeOf(number: number, [width, height]: Extents): Extents {
  return [
    number % width,
    Math.floor(number / width) % height,
    Math.floor(number / (width * height)),
  ];
}

/**
 * Runs a kernel: one cluster of the grid after the other, in the order of the grid. So a CTA that waits for one of a
 * later cluster waits for ever, which is a deadlock here and may be none on a GPU.
 */
export function runKernel(launch: KernelLaunch, options: KernelOptions = {}): KernelRun {
  const { grid, cluster, block, program } = launch;
  const warps = Math.ceil(volume(block) / warpLanes);
  const ctas = volume(cluster);
  const executable = createExecutable(program, ctas * warps);
  const { runs = () => true, scheduler = turnTakingScheduler, ...machineOptions } = options;
  const counted = {
    executions: new Float64Array(executable.count),
    lanes: new Float64Array(executable.count),
  };
  const findings: (Finding & { readonly cluster: number })[] = [];
  let [isComplete, ran, steps] = [true, 0, 0];
  const clusters = grid.map((extent, axis) => extent / cluster[axis]) as unknown as Extents;
  const areCtasCompared = volume(grid) * warps <= mostComparedWarps;
  const order = areCtasCompared ? { grid: createGridOrder() } : {};
  for (let number = 0; number < volume(clusters); number++) {
    if (!runs(number)) continue;
    const first = placeOf(number, clusters).map((at, axis) => at * cluster[axis]);
    const ctaOf = (rank: number): Extents => {
      const offset = placeOf(rank, cluster);
      return first.map((one, axis) => one + offset[axis]) as unknown as Extents;
    };
    const run = runCluster(
      {
        ctas: ctas as 1 | 2,
        warps,
        memory: launch.memory,
        ...(volume(grid) === ctas ? {} : { ctaName: (rank) => `CTA (${ctaOf(rank).join(', ')})` }),
        allocate: (shared) => allocateShared(launch, shared),
        program: ({ cta, warp }) => {
          const at = { cta: ctaOf(cta), rank: cta, warp, warps };
          return warpProgram(launch, executable, counted, at);
        },
      },
      { ...machineOptions, ...order, scheduler: scheduler() },
    );
    findings.push(...run.findings.map((finding) => ({ ...finding, cluster: number })));
    isComplete &&= run.isComplete;
    steps += run.steps;
    ran++;
  }
  return {
    findings,
    counts: countExecutions(executable, counted),
    isComplete,
    areCtasCompared,
    clusters: ran,
    steps,
  };
}

/** A CTA's shared memory: the static part, then the dynamic part. */
function allocateShared({ program, dynamicSharedBytes }: KernelLaunch, shared: SharedMemory): void {
  const bytes = program.staticSharedBytes + dynamicSharedBytes;
  if (bytes === 0) return;
  const allocation = shared.allocate('shared memory', bytes, 16);
  if (!allocation.ok) throw new RequestError(allocation.violation.message);
}

/** The program of one warp, its registers as they are at the kernel's beginning. */
function warpProgram(
  launch: KernelLaunch,
  executable: ExecutableProgram,
  counted: Pick<RunningWarp, 'executions' | 'lanes'>,
  at: {
    readonly cta: Extents;
    readonly rank: number;
    readonly warp: number;
    readonly warps: number;
  },
): WarpProgram {
  const { program, block, grid, cluster, dynamicSharedBytes, memory, tensorMapAt } = launch;
  const { cta, rank, warp, warps } = at;
  const { start, registers } = executable.clearRegisters(rank * warps + warp);
  const place: ThreadPlace = {
    block,
    grid,
    cluster,
    cta,
    warp,
    lane: 0,
    isExplicitCluster: program.directives.has('explicitcluster') || volume(cluster) > 1,
    staticSharedBytes: program.staticSharedBytes,
    dynamicSharedBytes,
  };
  setInitialRegisters(program, registers, { place, rank, parameters: memory.parameters });
  const threads = volume(block);
  const loans = createLoans(registers);
  const lanes = Math.min(warpLanes, threads - warp * warpLanes);
  let clock = 0;
  return runWarp({
    executable,
    issuing: { registers, cta: rank, warp, warps, threads, lend: loans.lend, tensorMapAt },
    start,
    loans,
    live: lanes === warpLanes ? -1 : (1 << lanes) - 1,
    parked: 0,
    meetings: new Map(),
    executions: counted.executions,
    lanes: counted.lanes,
    count: () => ++clock,
  });
}
