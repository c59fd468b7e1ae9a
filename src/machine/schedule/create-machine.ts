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
import type { CtaState, LaunchMemory, MachineState } from '../state.js';
import type { Scheduler } from './scheduler.js';

/** What a cluster is to run. */
export interface ClusterLaunch {
  /** 1, or 2 for a pair. */
  readonly ctas: 1 | 2;
  readonly warps: number;
  /** The registers that each thread starts with; default: nobody knows. */
  readonly registersPerThread?: number | undefined;
  /** What findings call a CTA, by its rank; default `CTA 0`. */
  readonly ctaName?: (cta: number) => string;
  /** What the program calls a warp, for findings. */
  readonly warpName?: (warp: number) => string;
  /**
   * The layout of a CTA's shared memory, before it starts.
   * @param shared of the CTA
   */
  readonly allocate?: (shared: SharedMemory) => void;
  /**
   * What is there besides the memory of the CTAs; several launches may have one global memory. Default: nothing
   * is allocated there.
   */
  readonly memory?: LaunchMemory;
  /** As that of `MachineState`; default: no cluster is left. */
  readonly cancelLaunch?: MachineState['cancelLaunch'];
  /** The program of a warp, with the shared memory of its CTA as `allocate` has laid it out. */
  readonly program: (place: WarpPlace) => WarpProgram;
}

/** How a cluster is run. */
export interface RunOptions {
  /** Default: in order. */
  readonly scheduler?: Scheduler;
  /** Default: `practice`. */
  readonly model?: MemoryModel;
  /** Whether races are looked for; default true. */
  readonly races?: boolean;
  /**
   * What it has in common with the clusters of its grid that have run: then races in global memory between them are
   * found too, and what they release is known to who acquires it. Default: the cluster is all there is.
   */
  readonly grid?: GridOrder;
  /** The tensor core's arithmetic and the rates; default those of sm_100. */
  readonly mmaUnits?: MmaUnits;
  readonly rates?: UnitRates;
  readonly trace?: (event: TraceEvent) => void;
  /** Told of what the schedule decides, while it does; a grid that is given has to be told as well. Default: nobody. */
  readonly onDependence?: DependenceListener | undefined;
  /** Told whether a step that has been taken was more than polling. */
  readonly onStep?: ((isMore: boolean) => void) | undefined;
  /** Steps that each warp has before those of a cluster are taken to poll, all that may go on; default 1,024. */
  readonly pollsPerWarp?: number | undefined;
  /** Steps after which the run is given up as endless; default 10^8. */
  readonly mostSteps?: number;
}

/** Global, constant and local memory without a byte. */
function createLaunchMemory(): LaunchMemory {
  return {
    global: createGlobalMemory(),
    constant: createConstantMemory(),
    parameters: new Uint8Array(0),
    localBytes: 0,
  };
}

/** A cluster before its first step: no warp has an instruction yet (`advance`). */
export function createMachine(launch: ClusterLaunch, options: RunOptions): MachineState {
  const { model = memoryModels.practice, races = true, rates = unitRates.sm_100 } = options;
  const { onDependence = () => undefined, grid = createGridOrder(model, onDependence) } = options;
  const memory = launch.memory ?? createLaunchMemory();
  const ctas = Array.from({ length: launch.ctas }, (_, rank): CtaState => {
    const shared = createSharedMemory();
    launch.allocate?.(shared);
    const counters = createCtaCounters();
    counters.mostSharedBytes = shared.regions.reduce((sum, { bytes }) => sum + bytes, 0);
    return {
      rank,
      number: grid.ctas++,
      shared,
      tensor: createTensorMemory(),
      counters,
      mbarriers: new Map(),
      endedMbarriers: new Map(),
      namedBarriers: new Map(),
      registers: createRegisterPool(launch.warps, launch.registersPerThread ?? null),
      warpgroups: new Map(),
      warps: [],
    };
  });
  const tracker = races ? createOrderTracker(model, ctas, grid) : null;
  const ctaName = launch.ctaName ?? ((rank) => `CTA ${rank}`);
  const warpName = launch.warpName ?? ((warp) => `warp ${warp}`);
  for (const cta of ctas)
    for (let index = 0; index < launch.warps; index++)
      cta.warps.push({
        cta,
        index,
        name: `${ctaName(cta.rank)} ${warpName(index)}`,
        program: launch.program({ cta: cta.rank, warp: index }),
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
        local: createLocalMemory(memory.localBytes),
        openWarpgroupGroup: [],
        warpgroupGroups: [],
        lastCommits: [],
        clusterGeneration: null,
        readyAt: 0,
        time: 0,
        order: tracker?.createWarp() ?? null,
        chosenAs: 'warp',
      });
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
    onDependence,
    step: 0,
    now: 0,
  };
}
