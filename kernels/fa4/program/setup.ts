import { allLanes, type Fragment, type WarpProgram } from '../../../src/machine/index.js';
import type { ProgramContext } from './context.js';
import { allocatedColumns, type BarrierPlan, type ProgramPlan } from './plan.js';
import { arriveOn, laneAddresses, registers, waitFor } from './signals.js';

/** Barrier 0 is that of __syncthreads. */
const allThreads = { barrier: 0, threads: 512 } as const;
/** The barrier of the warps that use tensor memory: a softmax group for each stage, correction, MMA. */
function tensorUsers({ stages }: ProgramPlan): { barrier: number; threads: number } {
  return { barrier: 2, threads: (stages * 4 + 4 + 1) * 32 };
}
/** The warp that allocates tensor memory. */
const allocator = 12;

/**
 * What all warps begin with: the first one initialises the mbarriers, and all wait until they are known
 * to the CTA, or to the cluster. Source: pipeline_init_arrive and pipeline_init_wait of CUTLASS, which
 * the kernel calls.
 */
export function* setUp({ plan, place }: ProgramContext): WarpProgram {
  const { barriers, ctas } = plan;
  const { tensorFree, ...pipelines } = barriers;
  const initialise = function* ({ name, count, offsets }: BarrierPlan): WarpProgram {
    for (const [stage, barrier] of offsets.entries())
      yield {
        op: 'mbarrier.init',
        barrier,
        count,
        site: `${name}: initialised`,
        name: offsets.length > 1 ? `${name} ${stage}` : name,
      };
  };
  if (place.warp === 0)
    for (const barrier of Object.values<BarrierPlan>(pipelines)) yield* initialise(barrier);
  if (ctas === 2 && place.warp === allocator) yield* initialise(tensorFree);
  yield { op: 'fence.mbarrier_init', site: 'barriers initialised: fence' };
  if (ctas === 1) {
    yield { op: 'bar.sync', ...allThreads, site: 'barriers initialised: all threads' };
    return;
  }
  yield { op: 'barrier.cluster.arrive.relaxed', site: 'barriers initialised: cluster arrives' };
  yield { op: 'barrier.cluster.wait', site: 'barriers initialised: cluster waits' };
}

/** Waits for tensor memory; afterwards `address` holds its address, in every lane. */
export function* awaitTensorMemory({ plan }: ProgramContext, address: Fragment): WarpProgram {
  yield { op: 'bar.sync', ...tensorUsers(plan), site: 'tensor memory allocated' };
  yield {
    op: 'ld.shared',
    words: 1,
    addresses: laneAddresses(plan.addresses.tensorAddress, 0),
    fragment: address,
    name: 'tensor address',
    site: 'tensor address: read',
  };
}

/** What the warp that allocates tensor memory does first. */
export function* allocateTensorMemory(context: ProgramContext, address: Fragment): WarpProgram {
  const { plan } = context;
  yield {
    op: 'tcgen05.alloc',
    group: plan.ctas,
    columns: allocatedColumns,
    destination: plan.addresses.tensorAddress,
    site: 'tensor memory: allocated',
  };
  yield* awaitTensorMemory(context, address);
}

/** A warp has used tensor memory for the last time. */
export function* leaveTensorMemory({ plan }: ProgramContext): WarpProgram {
  yield { op: 'bar.arrive', ...tensorUsers(plan), site: 'tensor memory: left' };
}

/** What the warp that allocated tensor memory does last. Source: TmemAllocator of CUTLASS. */
export function* freeTensorMemory({ plan, place }: ProgramContext, address: Fragment): WarpProgram {
  const { ctas, barriers } = plan;
  yield {
    op: 'tcgen05.relinquish_alloc_permit',
    group: ctas,
    site: 'tensor memory: no more allocations',
  };
  yield { op: 'bar.sync', ...tensorUsers(plan), site: 'tensor memory: all have left' };
  if (ctas === 2) {
    const peer = 1 - place.cta;
    yield arriveOn(barriers.tensorFree, 0, peer, allLanes, 'tensor memory: peer may free');
    yield waitFor(barriers.tensorFree, 0, 0, 'tensor memory: peer has left');
  }
  yield {
    op: 'tcgen05.dealloc',
    group: ctas,
    address: address[0],
    columns: allocatedColumns,
    site: 'tensor memory: freed',
  };
}

/** Registers for the address of tensor memory. */
export function tensorAddressRegisters(): Fragment {
  return registers(1);
}
