import { siteOf, splitClusterAddress } from '../isa/index.js';
import {
  arriveOn,
  completeTransaction,
  expectTransaction,
  mayComeLate,
  mostTransactionBytes,
  type Actor,
  type ArrivalResult,
  type Clock,
  type Mbarrier,
} from '../ordering/index.js';
import { hasExited, report, type CtaState, type MachineState, type WarpState } from '../state.js';

/**
 * Whether an actor is a tcgen05.commit of this CTA that a memory model allows to arrive late, if everything that it
 * tracks is in this clock.
 */
function isStrayCommit(
  { model }: MachineState,
  { warp, order }: Actor,
  cta: CtaState,
  known: Clock | null,
): boolean {
  if (cta !== warp.cta || order === null) return false;
  return mayComeLate(model, order.tracked, known ?? order.clock);
}

/** The barrier at a cluster address; reports when there is none. */
export function findBarrier(machine: MachineState, actor: Actor, address: number): Mbarrier | null {
  const { warp } = actor;
  const act = [{ who: warp.name, site: actor.site ?? siteOf(warp.current), step: machine.step }];
  const { rank, offset } = splitClusterAddress(address);
  const cta = machine.ctas[rank];
  const barrier = cta?.mbarriers.get(offset);
  const ended = cta?.endedMbarriers.get(offset);
  if (barrier === undefined && ended !== undefined && isStrayCommit(machine, actor, cta, ended)) {
    report(
      machine,
      warp,
      'stray-commit',
      `arrives on the mbarrier at ${offset} after its end`,
      act,
    );
    return null;
  }
  if (cta === undefined || barrier === undefined) {
    const what = `no mbarrier at ${offset} of CTA ${rank}`;
    report(machine, warp, 'barrier-initialisation', what, act);
    return null;
  }
  // Whether a commit may come later follows from the clocks of the CTA's warps at their end.
  if (hasExited(cta) && !isStrayCommit(machine, actor, cta, null))
    report(machine, warp, 'exited-cta', `arrives on ${barrier.name} of CTA ${rank}`, act);
  return barrier;
}

/** Reports an arrival that was illegal; records the end of a phase that it has completed. */
function settle(
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
  barrier.completedStep = machine.step;
  for (const step of barrier.tests.splice(0)) machine.onDependence({ cta: undefined, step });
  machine.tracker?.complete(machine, barrier);
}

/**
 * Reports bytes that a phase cannot count: expected bytes that could leave more missing than its counter holds, should none
 * have arrived, or bytes that arrived before they were expected.
 */
function checkTransactions(
  machine: MachineState,
  { warp }: Actor,
  { name, cta, expectedBytes, transactionBytes }: Mbarrier,
  { expected = 0, arrived = 0 }: { readonly expected?: number; readonly arrived?: number },
): void {
  const all = expectedBytes + expected;
  const ahead = arrived - transactionBytes;
  const of = `${name} of CTA ${cta}`;
  const most = `a phase counts ${mostTransactionBytes} bytes at most`;
  if (expected > 0 && expected <= mostTransactionBytes && all > mostTransactionBytes)
    report(machine, warp, 'over-arrival', `${of} may lack ${all} bytes; ${most}`);
  if (arrived > 0 && ahead > mostTransactionBytes)
    report(machine, warp, 'over-arrival', `${of} is ${ahead} bytes ahead; ${most}`);
}

/** Bytes that the current phase of a barrier, by its cluster address, is to wait for. */
export function expectBytes(
  machine: MachineState,
  warp: WarpState,
  address: number,
  bytes: number,
): void {
  const actor = { warp, order: null };
  const barrier = findBarrier(machine, actor, address);
  if (barrier === null) return;
  machine.tracker?.arrive(machine, actor, barrier, 'expectation');
  checkTransactions(machine, actor, barrier, { expected: bytes });
  settle(machine, actor, barrier, expectTransaction(barrier, bytes));
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
    checkTransactions(machine, actor, barrier, { expected: expectedBytes });
  }
  settle(machine, actor, barrier, arriveOn(barrier, count, actor.warp.name, expectedBytes));
}

/** Raises the expected arrivals of a barrier's current phase, by its cluster address. */
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
  checkTransactions(machine, actor, barrier, { arrived: bytes });
  settle(machine, actor, barrier, completeTransaction(barrier, bytes));
}
