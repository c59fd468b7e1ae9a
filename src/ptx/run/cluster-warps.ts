import type { LaunchMemory, SharedMemory, WarpProgram } from '../../machine/index.js';
import { RequestError } from '../../request-error.js';
import type { IssuingWarp, WarpRegisters } from '../instructions/index.js';
import type { Program, ThreadPlace } from '../program/index.js';
import type { ExecutableProgram } from './executable.js';
import { setInitialRegisters } from './initial-registers.js';
import { createLoans } from './loans.js';
import { createRegisterFences } from './register-fences.js';
import { runWarp, type RunningWarp } from './warp-run.js';

/** Along x, y and z. */
export type Extents = readonly [number, number, number];

export const warpLanes = 32;

/** The number of elements in these extents. */
export const volume = ([x, y, z]: Extents) => x * y * z;

/** A kernel with its launch configuration. */
export interface KernelLaunch {
  readonly program: Program;
  /** CTAs of the grid, threads of a CTA, CTAs of a cluster: x, y, z each. */
  readonly grid: Extents;
  readonly block: Extents;
  readonly cluster: Extents;
  readonly dynamicSharedBytes: number;
  /** Parameters, and the allocations in global and constant memory. */
  readonly memory: LaunchMemory;
  readonly tensorMaps: IssuingWarp['tensorMaps'];
}

/** Lanes of a warp before they execute a watched line. */
export interface WatchedStop {
  readonly line: number;
  /** Position of the CTA in the grid. */
  readonly cta: Extents;
  readonly warp: number;
  /** Bit l for lane l. */
  readonly lanes: number;
  /** Registers of the whole warp, as they are now. */
  readonly registers: WarpRegisters;
  /** Whether a pending operation fills a register or reads it, by the offset of its slot. */
  readonly isLent: (offset: number) => boolean;
}

/** A CTA's shared memory: the static part, then the dynamic part. */
export function allocateShared(
  { program, dynamicSharedBytes }: KernelLaunch,
  shared: SharedMemory,
): void {
  const bytes = program.staticSharedBytes + dynamicSharedBytes;
  if (bytes === 0) return;
  const allocation = shared.allocate('shared memory', bytes, 16);
  if (!allocation.ok) throw new RequestError(allocation.violation.message);
}

/** The program of one warp, with its registers as at the kernel's beginning. */
export function warpProgram(
  launch: KernelLaunch,
  executable: ExecutableProgram,
  {
    onWatched,
    ...counted
  }: Pick<RunningWarp, 'executions' | 'lanes'> & {
    readonly onWatched: (stop: WatchedStop) => void;
  },
  at: {
    readonly cta: Extents;
    readonly rank: number;
    readonly warp: number;
    readonly warps: number;
  },
): WarpProgram {
  const { program, block, grid, cluster, dynamicSharedBytes, memory, tensorMaps } = launch;
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
    issuing: {
      registers,
      cta: rank,
      warp,
      warps,
      threads,
      lend: loans.lend,
      registerFences: createRegisterFences(),
      tensorMaps,
    },
    start,
    loans,
    live: lanes === warpLanes ? -1 : (1 << lanes) - 1,
    parked: 0,
    meetings: new Map(),
    ...counted,
    count: () => ++clock,
    onWatched: (line, active) => {
      onWatched({ line, cta, warp, lanes: active, registers, isLent: loans.isLent });
    },
  });
}
