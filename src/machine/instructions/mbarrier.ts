import { splitClusterAddress } from '../isa/index.js';
import {
  arriveOn,
  completeTransaction,
  type Actor,
  type ArrivalResult,
  type Mbarrier,
} from '../ordering/index.js';
import { hasExited, report, type MachineState, type WarpState } from '../state.js';

/** The barrier at a cluster address; reports when there is none. */
export function findBarrier(
  machine: MachineState,
  { warp }: Actor,
  address: number,
): Mbarrier | null {
  const { rank, offset } = splitClusterAddress(address);
  const cta = machine.ctas[rank];
  const barrier = cta?.mbarriers.get(offset);
  if (cta === undefined || barrier === undefined) {
    report(machine, warp, 'barrier-initialisation', `no mbarrier at ${offset} of CTA ${rank}`);
    return null;
  }
  if (hasExited(cta))
    report(machine, warp, 'exited-cta', `arrives on ${barrier.name} of CTA ${rank}`);
  return barrier;
}

/** Reports what an arrival must not have done; a phase that it has completed is one from now on. */
export function settle(
  machine: MachineState,
  actor: Actor,
  barrier: Mbarrier,
  result: ArrivalResult,
): void {
  if (result === 'over-arrival')
    report(
      machine,
      actor.warp,
      'over-arrival',
      `${barrier.name} of CTA ${barrier.cta} expects ${barrier.expected} arrivals and has them`,
    );
  if (result !== 'completed') return;
  barrier.completedAt = machine.now;
  machine.tracker?.complete(machine, barrier);
}

/** Arrivals of an actor on a barrier, by its cluster address. */
export function arrive(
  machine: MachineState,
  actor: Actor,
  address: number,
  count: number,
  {
    expectedBytes = 0,
    state,
    drops = false,
  }: {
    readonly expectedBytes?: number;
    readonly state?: Uint32Array | undefined;
    readonly drops?: boolean | undefined;
  } = {},
): void {
  const barrier = findBarrier(machine, actor, address);
  if (barrier === null) return;
  state?.set([barrier.phase, barrier.pending].slice(0, state.length));
  if (count <= barrier.pending) {
    machine.tracker?.arrive(machine, actor, barrier, 'arrival');
    if (drops) barrier.expected -= count;
  }
  settle(machine, actor, barrier, arriveOn(barrier, count, actor.warp.name, expectedBytes));
}

/** The current phase of a barrier, by its cluster address, is to have so many arrivals more than it expects. */
export function expectArrivals(
  machine: MachineState,
  warp: WarpState,
  address: number,
  count: number,
): void {
  const barrier = findBarrier(machine, { warp, order: null }, address);
  if (barrier !== null) barrier.pending += count;
}

/** Bytes that an operation has brought, counted on a barrier. */
export function completeBytes(
  machine: MachineState,
  actor: Actor,
  address: number,
  bytes: number,
): void {
  const barrier = findBarrier(machine, actor, address);
  if (barrier === null) return;
  machine.tracker?.arrive(machine, actor, barrier, 'bytes');
  settle(machine, actor, barrier, completeTransaction(barrier, bytes));
}
