import type { ClusterLaunch, RunOptions } from './cluster-launch.js';
import { createCtaCounters } from './counters.js';
import { createFindingCollector } from './finding.js';
import { createSharedMemory, createTensorMemory } from './memory/index.js';
import { memoryModels } from './memory-model.js';
import { createMmaUnits } from './mma-units.js';
import { createNamedBarrier } from './named-barrier.js';
import type { CtaState, MachineState } from './state.js';
import { createUnitOccupancy } from './timing.js';
import { createOrderTracker } from './track-order.js';
import { unitRates } from './unit-rates.js';

const threadsOfWarp = 32;

/** A cluster before its first step: no warp has an instruction yet (`advance`). */
export function createMachine(launch: ClusterLaunch, options: RunOptions): MachineState {
  const { model = memoryModels.practice, races = true, rates = unitRates.sm_100 } = options;
  const tracker = races ? createOrderTracker(model, launch.ctas) : null;
  const ctas = Array.from({ length: launch.ctas }, (_, rank): CtaState => {
    const shared = createSharedMemory();
    launch.allocate?.(shared);
    const counters = createCtaCounters();
    counters.mostSharedBytes = shared.regions.reduce((sum, { bytes }) => sum + bytes, 0);
    return {
      rank,
      shared,
      tensor: createTensorMemory(),
      counters,
      mbarriers: new Map(),
      namedBarriers: new Map(),
      warps: [],
    };
  });
  const warpName = launch.warpName ?? ((warp) => `warp ${warp}`);
  for (const cta of ctas)
    for (let index = 0; index < launch.warps; index++)
      cta.warps.push({
        cta,
        index,
        name: `CTA ${cta.rank} ${warpName(index)}`,
        program: launch.program({ cta: cta.rank, warp: index }),
        current: null,
        continuation: null,
        loads: [],
        stores: [],
        tensorOperations: [],
        tensorHistory: new Map(),
        openBulkGroup: [],
        bulkGroups: [],
        lastCommit: null,
        clusterGeneration: null,
        readyAt: 0,
        time: 0,
        order: tracker?.createWarp() ?? null,
        chosenAs: 'warp',
      });
  return {
    ctas,
    model,
    rates,
    tracker,
    findings: createFindingCollector(),
    pending: [],
    mmaUnits: options.mmaUnits ?? createMmaUnits('sm_100'),
    occupancy:
      options.scheduler?.isTimed === true ? createUnitOccupancy(rates, options.trace) : null,
    clusterBarrier: createNamedBarrier(-1, launch.ctas * launch.warps * threadsOfWarp),
    pairAllocation: createNamedBarrier(-2, launch.ctas * threadsOfWarp),
    trace: options.trace ?? null,
    step: 0,
    now: 0,
  };
}
