import {
  allLanes,
  type ByteStore,
  type Fragment,
  type SharedMemory,
  type TensorMap,
  tensorMemoryColumns,
  warpLanes,
  type WarpPlace,
  type WarpProgram,
} from '../../../src/machine/index.js';
import { RequestError } from '../../../src/request-error.js';
import { tileQueries } from '../thread-blocks.js';
import type { BarrierPlan, ProgramBarriers } from './barrier-plans.js';
import type { ProgramPlan } from './plan.js';
import {
  arriveOn,
  laneAddresses,
  type Parity,
  registers,
  type RingPlace,
  waitFor,
} from './signals.js';
import type { RowArithmetic } from './rows/index.js';
import type { WorkTile } from './tiles.js';

/** Columns of tensor memory that the kernel allocates: all. */
const allocatedColumns = tensorMemoryColumns;

const bufferAlignment = 1024;
const barrierBytes = 8;
const wordBytes = 4;

/** Allocates a plan's parts in a CTA's shared memory in the kernel's order; the plan with their addresses. */
export function layOut(plan: ProgramPlan, shared: SharedMemory): ProgramPlan {
  const place = (name: string, bytes: number, alignment: number): number => {
    const result = shared.allocate(name, bytes, alignment);
    if (!result.ok) throw new RequestError(`${name}: ${result.violation.message}`);
    return result.address;
  };
  const barriers = Object.fromEntries(
    Object.entries<BarrierPlan>({ ...plan.barriers }).map(([key, barrier]) => {
      const bytes = barrier.offsets.length * barrierBytes;
      const first = place(barrier.name, bytes, barrierBytes);
      const offsets = barrier.offsets.map((_, i) => first + i * barrierBytes);
      return [key, { ...barrier, offsets }];
    }),
  ) as unknown as ProgramBarriers;
  const { stages, q, o, ring, isRingUneven, k, v, overlapsQueries } = plan;
  const tensorAddress = place('tensor address', wordBytes, wordBytes);
  const statistics = stages * tileQueries * wordBytes;
  const scale = place('α and row sums', statistics, 16);
  const maxima = place('row maxima', statistics, 16);
  const staged = overlapsQueries ? null : place('O', stages * o.bytes, bufferAlignment);
  const queryBytes = stages * (overlapsQueries ? Math.max(q.bytes, o.bytes) : q.bytes);
  const queries = place('Q', queryBytes, bufferAlignment);
  const { ringStride } = plan.addresses;
  const ringBytes = isRingUneven ? 2 * k.bytes + v.bytes : ring.layout * ringStride;
  const each = (first: number, step: number): number[] =>
    Array.from({ length: stages }, (_, stage) => first + stage * step);
  return {
    ...plan,
    barriers,
    addresses: {
      ...plan.addresses,
      tensorAddress,
      scale,
      maxima,
      q: each(queries, q.bytes),
      o: each(staged ?? queries, o.bytes),
      ring: place('K/V', ringBytes, bufferAlignment),
    },
  };
}

/**
 * Address of a buffer of the K/V ring. In an uneven ring the middle one lies further to the right
 * while K, V, K are in the ring, and further to the left while V, K, V are.
 */
export function ringAddress(
  { addresses }: ProgramPlan,
  { index }: RingPlace,
  round: Parity,
): number {
  const { ring, ringStride, ringOffset } = addresses;
  const moved = index === 1 ? ringOffset * (1 - 2 * round) : 0;
  return ring + index * ringStride + moved;
}

/** Data that every warp of a CTA receives. */
export interface ProgramContext {
  readonly plan: ProgramPlan;
  readonly place: WarpPlace;
  readonly tiles: readonly WorkTile[];
  readonly rows: RowArithmetic;
  readonly maps: {
    readonly q: TensorMap;
    readonly k: TensorMap;
    readonly v: TensorMap;
    readonly o: TensorMap;
  };
  /** [batch · heads · queries] fp32 bits. */
  readonly lse: ByteStore;
}

/** Roles of the warps of a CTA. Source: `__init__` of FlashAttentionForwardSm100. */
export const warpRoles = [
  ...(['softmax', 'softmax', 'softmax', 'softmax'] as const),
  ...(['softmax', 'softmax', 'softmax', 'softmax'] as const),
  ...(['correction', 'correction', 'correction', 'correction'] as const),
  ...(['MMA', 'epilogue', 'load', 'idle'] as const),
];

/** Name of a warp in findings. */
export function warpName(warp: number): string {
  const role = warpRoles[warp];
  return role === 'softmax' ? `warp ${warp} (softmax ${warp >> 2})` : `warp ${warp} (${role})`;
}

/** Barrier 0 is that of __syncthreads. */
const allThreads = { barrier: 0, threads: warpRoles.length * warpLanes };
/** The barrier of the warps that use tensor memory: a softmax group for each stage, correction, MMA. */
function tensorUsers({ stages }: ProgramPlan): { barrier: number; threads: number } {
  return { barrier: 2, threads: (stages * 4 + 4 + 1) * warpLanes };
}
/** The warp that allocates tensor memory. */
const allocator = 12;

/**
 * The beginning of all warps: the first one initialises the mbarriers, and all wait until they are
 * known to the CTA, or to the cluster. Source: pipeline_init_arrive and pipeline_init_wait of CUTLASS,
 * which the kernel calls.
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

/** The first steps of the warp that allocates tensor memory. */
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

/** Signals that a warp has used tensor memory for the last time. */
export function* leaveTensorMemory({ plan }: ProgramContext): WarpProgram {
  yield { op: 'bar.arrive', ...tensorUsers(plan), site: 'tensor memory: left' };
}

/** The last steps of the warp that allocated tensor memory. Source: TmemAllocator of CUTLASS. */
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
    address: address.words[0],
    columns: allocatedColumns,
    site: 'tensor memory: freed',
  };
}

/** Registers for the address of tensor memory. */
export function tensorAddressRegisters(): Fragment {
  return registers(1);
}
