import {
  clusterAddress,
  createByteStore,
  warpLanes,
  type Fragment,
  type Instruction,
  type LaneMask,
  type WarpPlace,
} from '../../../src/machine/index.js';
import type { BarrierPlan } from './barrier-plans.js';
import type { ProgramPlan } from './plan.js';

/** The CTA that issues the MMAs of a pair, on whose barriers both arrive. */
export const leader = 0;

/** The parity that a wait waits for; flips with every use of a barrier. */
export type Parity = 0 | 1;

/** The other parity. */
export function flip(parity: Parity): Parity {
  return parity === 0 ? 1 : 0;
}

/** A place in a ring of buffers, with the parity of its barriers' phases. */
export interface RingPlace {
  readonly index: number;
  readonly parity: Parity;
}

/** The next place of a ring. */
export function advance({ index, parity }: RingPlace, depth: number): RingPlace {
  return index + 1 < depth ? { index: index + 1, parity } : { index: 0, parity: flip(parity) };
}

/** Waits for a phase of a barrier of the CTA itself. */
export function waitFor(
  barrier: BarrierPlan,
  stage: number,
  parity: Parity,
  site: string,
): Instruction {
  const offset = barrier.offsets[stage];
  return { op: 'mbarrier.try_wait.parity', barrier: offset, parity, site };
}

/** Arrives on a barrier of a CTA of the cluster. */
export function arriveOn(
  barrier: BarrierPlan,
  stage: number,
  rank: number,
  lanes: LaneMask,
  site: string,
): Instruction {
  const address = clusterAddress(rank, barrier.offsets[stage]);
  return { op: 'mbarrier.arrive', barrier: address, lanes, site };
}

/** Makes a barrier of every CTA track the MMAs issued so far. */
export function commitTo(
  { ctas }: ProgramPlan,
  barrier: BarrierPlan,
  stage: number,
  site: string,
): Instruction {
  const ranks = ctas === 1 ? [leader] : [0, 1];
  const offset = barrier.offsets[stage];
  return { op: 'tcgen05.commit', group: ctas, barrier: offset, ctas: ranks, site };
}

/** The first of the named barriers between softmax and correction warps, one for each pair of warps. */
const firstStatisticsBarrier = 3;
const warpsOfGroup = 4;
const threadsOfPair = 64;

/** A named barrier that a softmax warp arrives at and a correction warp waits for. */
export function statistics(
  op: 'bar.sync' | 'bar.arrive',
  stage: number,
  quarter: number,
  site: string,
): Instruction {
  const barrier = firstStatisticsBarrier + stage * warpsOfGroup + quarter;
  return { op, barrier, threads: threadsOfPair, site };
}

/** Addresses of one word for each of a warp's lanes, `step` bytes apart. */
export function laneAddresses(first: number, step = 4): Int32Array<ArrayBuffer> {
  return Int32Array.from({ length: warpLanes }, (_, lane) => first + lane * step);
}

/** Registers of a warp, `count` in each lane. */
export function registers(count: number): Fragment {
  return createByteStore(4 * warpLanes * count);
}

/** The quarter of tensor memory, and of a tile's rows, that a warp reaches. */
export function quarterOf({ warp }: WarpPlace): number {
  return warp % warpsOfGroup;
}
