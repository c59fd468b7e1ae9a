import {
  clusterAddress,
  type ByteStore,
  type LaunchMemory,
  type SharedMemory,
  type WarpProgram,
} from '../../machine/index.js';
import { RequestError } from '../../request-error.js';
import {
  moveToRegister,
  type IssuingWarp,
  type RegisterFences,
  type Slot,
  type WarpRegisters,
} from '../instructions/index.js';
import type { Program, ThreadPlace } from '../program/index.js';
import type { ExecutableProgram } from './executable.js';
import { createLoans } from './loans.js';
import { runWarp, type RunningWarp } from './warp-run.js';

const none = 'with no wgmma.fence before the first product of its warp';
const touched = (what: string) => `with no wgmma.fence since registers of ${what} were accessed`;

/**
 * The accesses to registers of a warp that `wgmma.fence` has ordered: none at first. A product needs a fence after each
 * access of other instructions to the registers of D and A; products of one shape may follow one another in one accumulator
 * without one. Source: PTX ISA, `wgmma.fence`.
 */
export function createRegisterFences(): RegisterFences {
  // Accessed since the last fence, and accumulated in since then, by the shape of the product.
  const accessed = new Set<number>();
  const shapes = new Map<number, string>();
  let hasFence = false;
  return {
    touch: (offsets) => {
      for (const offset of offsets) accessed.add(offset);
    },
    fence: () => {
      accessed.clear();
      shapes.clear();
      hasFence = true;
    },
    multiply: (d, a, shape) => {
      const isAccessed = ({ offset }: Slot) => accessed.has(offset);
      const before = shapes.get(d[0].offset);
      const message = !hasFence
        ? none
        : d.some(isAccessed)
          ? touched('D')
          : a.some(isAccessed)
            ? touched('A')
            : a.some(({ offset }) => shapes.has(offset))
              ? 'with no wgmma.fence since another product accumulated in registers of A'
              : before !== undefined && before !== shape
                ? `with no wgmma.fence since a product of another shape (${before}) accumulated in D`
                : null;
      for (const { offset } of d) shapes.set(offset, shape);
      // A report on one product holds for those after it.
      if (message !== null) accessed.clear();
      return message;
    },
  };
}

/** Writes the initial values of a warp into its registers: special registers, parameters, addresses. */
function setInitialRegisters(
  { specialRegisters, parameterRegisters, sharedAddresses }: Program,
  registers: WarpRegisters,
  warp: {
    /** Place of the warp's first thread. */
    readonly place: ThreadPlace;
    readonly rank: number;
    /** The kernel's parameter space. */
    readonly parameters: ByteStore;
  },
): void {
  for (const { slot, register } of specialRegisters)
    for (let lane = 0; register.value !== null && lane < warpLanes; lane++) {
      const value = register.value({ ...warp.place, lane });
      setNumber(registers, slot, lane, slot.width === 'pred' && value !== 0 ? 0xffffffff : value);
    }
  for (const { slot, address } of sharedAddresses)
    for (let lane = 0; lane < warpLanes; lane++)
      setNumber(registers, slot, lane, clusterAddress(warp.rank, address));
  const store = warp.parameters;
  for (const { slot, ...place } of parameterRegisters)
    moveToRegister(registers, slot, { store, stride: 0, ...place }, -1);
}

function setNumber(registers: WarpRegisters, slot: Slot, lane: number, value: number): void {
  setBits(registers, slot, lane, BigInt(value));
}

function setBits(registers: WarpRegisters, slot: Slot, lane: number, bits: bigint): void {
  const words = registers.words(slot);
  const word = (i: number) => Number(BigInt.asUintN(32, bits >> BigInt(32 * i)));
  if (slot.width !== 64 && slot.width !== 128) {
    words[lane] = word(0);
    return;
  }
  words[2 * lane] = word(0);
  words[2 * lane + 1] = word(1);
  if (slot.width === 64) return;
  words[2 * (warpLanes + lane)] = word(2);
  words[2 * (warpLanes + lane) + 1] = word(3);
}

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

/** The position of a warp: its CTA in the grid and in the cluster, its number there, and the warps of a CTA. */
export interface WarpPosition {
  readonly cta: Extents;
  readonly rank: number;
  readonly warp: number;
  readonly warps: number;
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
  at: WarpPosition,
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
