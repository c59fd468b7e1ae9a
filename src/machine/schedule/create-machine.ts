import { createRegisterPool } from '../instructions/index.js';
import {
  createMmaUnits,
  createWarpgroupProducts,
  warpLanes,
  type MmaUnits,
  type WarpPlace,
  type WarpProgram,
} from '../isa/index.js';
import {
  createCtaCounters,
  createUnitOccupancy,
  unitRates,
  type TraceEvent,
  type UnitRates,
} from '../measure/index.js';
import {
  createByteStore,
  createConstantMemory,
  createGlobalMemory,
  createLocalMemory,
  createSharedMemory,
  createTensorMemory,
  describeAddress,
  type SharedMemory,
} from '../memory/index.js';
import {
  createFindingCollector,
  createGridOrder,
  createNamedBarrier,
  createOrderTracker,
  memoryModels,
  type DependenceListener,
  type GridOrder,
  type MemoryModel,
} from '../ordering/index.js';
import type { CtaState, LaunchMemory, MachineState, WarpState } from '../state.js';
import type { ValueTracer } from '../value-tracer.js';
import type { Scheduler } from './scheduler.js';

/** The work of a cluster. */
export interface ClusterLaunch {
  /** 1, or 2 for a pair. */
  readonly ctas: 1 | 2;
  readonly warps: number;
  /** The registers that each thread starts with; default: unknown. */
  readonly registersPerThread?: number | undefined;
  /** Name of a CTA in findings, by its rank; default `CTA 0`. */
  readonly ctaName?: (cta: number) => string;
  /** The program's name for a warp, for findings. */
  readonly warpName?: (warp: number) => string;
  /**
   * Lays out a CTA's shared memory, before it starts.
   * @param shared of the CTA
   */
  readonly allocate?: (shared: SharedMemory) => void;
  /**
   * Memory besides that of the CTAs; several launches may have one global memory. Default: nothing is allocated
   * there.
   */
  readonly memory?: LaunchMemory;
  /** As that of `MachineState`; default: no cluster is left to cancel. */
  readonly cancelLaunch?: MachineState['cancelLaunch'];
  /** The program of a warp, with the shared memory of its CTA as `allocate` has laid it out. */
  readonly program: (place: WarpPlace) => WarpProgram;
}

/** Options of a cluster's run. */
export interface RunOptions {
  /** Default: in order. */
  readonly scheduler?: Scheduler;
  /** Default: `practice`. */
  readonly model?: MemoryModel;
  /** Whether races are looked for; default true. */
  readonly races?: boolean;
  /**
   * State shared with the clusters of its grid that have run: then races in global memory between them are found
   * too, and their releases are known to warps that acquire them. Default: the cluster is alone.
   */
  readonly grid?: GridOrder;
  /** The tensor core's arithmetic and the rates; default those of sm_100. */
  readonly mmaUnits?: MmaUnits;
  readonly rates?: UnitRates;
  readonly trace?: (event: TraceEvent) => void;
  /** Told of each operation that makes values from others; default: what values stand for is not followed. */
  readonly tracer?: ValueTracer | undefined;
  /** Called when the schedule decides an outcome; a grid that is given needs its own listener. Default: nothing. */
  readonly onDependence?: DependenceListener | undefined;
  /** Called after each step, with whether it was more than polling. */
  readonly onStep?: ((isMore: boolean) => void) | undefined;
  /** Consecutive polls per warp after which all warps of a cluster that may go on count as polling; default 1,024. */
  readonly pollsPerWarp?: number | undefined;
  /** Steps after which the run is aborted as endless; default 10^8. */
  readonly mostSteps?: number;
}

/** Global, constant and local memory without a byte. */
function createLaunchMemory(): LaunchMemory {
  return {
    global: createGlobalMemory(),
    constant: createConstantMemory(),
    parameters: createByteStore(0),
    localBytes: 0,
  };
}

/** A CTA before its first step, without its warps. */
function createCta(
  launch: ClusterLaunch,
  rank: number,
  number: number,
  tracer: ValueTracer | undefined,
): CtaState {
  const shared = createSharedMemory();
  launch.allocate?.(shared);
  const tensor = createTensorMemory();
  for (const { store } of [shared, tensor]) tracer?.unwritten(store);
  const counters = createCtaCounters();
  counters.mostSharedBytes = shared.regions.reduce((sum, { bytes }) => sum + bytes, 0);
  return {
    rank,
    number,
    shared,
    tensor,
    counters,
    mbarriers: new Map(),
    endedMbarriers: new Map(),
    namedBarriers: new Map(),
    registers: createRegisterPool(launch.warps, launch.registersPerThread ?? null),
    warpgroups: new Map(),
    warps: [],
  };
}

/** The names of warps in findings. */
function warpNames({
  ctaName = (rank) => `CTA ${rank}`,
  warpName = (warp) => `warp ${warp}`,
}: ClusterLaunch): (cta: number, warp: number) => string {
  return (cta, warp) => `${ctaName(cta)} ${warpName(warp)}`;
}

/** A warp before its first instruction. */
function createWarp(
  cta: CtaState,
  index: number,
  { name, program, local, order }: Pick<WarpState, 'name' | 'program' | 'local' | 'order'>,
): WarpState {
  return {
    cta,
    index,
    name,
    program,
    current: null,
    continuation: null,
    loads: [],
    stores: [],
    tensorOperations: [],
    tensorHistory: new Map(),
    openBulkGroup: [],
    bulkGroups: [],
    openCopyGroup: [],
    copyGroups: [],
    local,
    openWarpgroupGroup: [],
    warpgroupGroups: [],
    lastCommits: [],
    clusterGeneration: null,
    readyAt: 0,
    time: 0,
    order,
    chosenAs: 'warp',
  };
}

/** A cluster before its first step: no warp has an instruction yet (`advance`). */
export function createMachine(launch: ClusterLaunch, options: RunOptions): MachineState {
  const { model = memoryModels.practice, races = true, rates = unitRates.sm_100 } = options;
  const { onDependence = () => undefined, grid = createGridOrder(model, onDependence) } = options;
  const memory = launch.memory ?? createLaunchMemory();
  const ctas = Array.from({ length: launch.ctas }, (_, rank) =>
    createCta(launch, rank, grid.ctas++, options.tracer),
  );
  const tracker = races ? createOrderTracker(model, ctas, grid) : null;
  const nameOf = warpNames(launch);
  for (const cta of ctas)
    for (let index = 0; index < launch.warps; index++) {
      const name = nameOf(cta.rank, index);
      const program = launch.program({ cta: cta.rank, warp: index });
      const local = createLocalMemory(memory.localBytes);
      options.tracer?.unwritten(local.store);
      const order = tracker?.createWarp() ?? null;
      cta.warps.push(createWarp(cta, index, { name, program, local, order }));
    }
  return {
    memory,
    cancelLaunch: launch.cancelLaunch ?? (() => null),
    placeOfGlobal: (address) => describeAddress(memory.global.find(address), address),
    ctas,
    model,
    rates,
    tracker,
    laneOrders: races && model.laneOrder ? [] : null,
    findings: createFindingCollector(),
    pending: [],
    hasRepeated: false,
    strands: [],
    warpgroupProducts: createWarpgroupProducts(),
    mmaUnits: options.mmaUnits ?? createMmaUnits('sm_100'),
    occupancy:
      options.scheduler?.isTimed === true ? createUnitOccupancy(rates, options.trace) : null,
    clusterBarrier: createNamedBarrier(-1, launch.ctas * launch.warps * warpLanes),
    pairAllocation: createNamedBarrier(-2, launch.ctas * warpLanes),
    trace: options.trace ?? null,
    tracer: options.tracer ?? null,
    onDependence,
    step: 0,
    now: 0,
  };
}
