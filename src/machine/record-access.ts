import type { Actor, OperationOrder } from './order-tracker.js';
import type { AccessClocks, AccessKind, AccessTable, Proxy } from './ordering/index.js';
import { siteOf, type MachineState } from './state.js';

/** What is ordered before an actor's next event, and the chain that the event belongs to. */
export function clocksOfActor({ warp, order }: Actor): AccessClocks & { readonly chain: number } {
  return order ?? warp.order!;
}

/** Enters an event in the table of accesses; its stamp. */
export type RecordAccess = (
  machine: MachineState,
  actor: Actor,
  kind: AccessKind,
  proxy: Proxy,
) => number;

/** Enters events in this table. An operation's reads in one proxy are one event; so are its writes. */
export function createAccessRecorder(accesses: AccessTable): RecordAccess {
  let lastOrder: OperationOrder | null = null;
  let lastKind: AccessKind = 'read';
  let lastProxy: Proxy = 'generic';
  let lastStamp = 0;
  return ({ step }, actor, kind, proxy) => {
    const { warp, order } = actor;
    if (order !== null && order === lastOrder && kind === lastKind && proxy === lastProxy)
      return lastStamp;
    const { chain } = clocksOfActor(actor);
    const time = order?.time ?? warp.order!.clock.times[chain];
    const site = order?.site ?? siteOf(warp.current);
    const who = order === null ? warp.name : `${order.name} of ${warp.name}`;
    lastOrder = order;
    lastKind = kind;
    lastProxy = proxy;
    lastStamp = accesses.record({ chain, time, proxy, kind, step, site, who });
    return lastStamp;
  };
}
