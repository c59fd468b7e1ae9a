import { siteOf } from '../isa/index.js';
import { joinEventClocks } from './barrier-history.js';
import { createClock, includeInClock, joinClock, type Chains } from './clock.js';
import type { CtaReach } from './lifetimes.js';
import type { MemoryModel } from './memory-model.js';
import { beginOperation, joinClocks, needsTensorFences, tick } from './operation-order.js';
import type { OrderTracker, WarpOrder } from './order-tracker.js';
import { createClocks, fenceOrder, joinFences } from './synchronisation.js';

/** Adds the events that one agent knows to those that another knows. */
function joinKnowledge(into: WarpOrder, from: WarpOrder): void {
  joinEventClocks(into, from);
  joinClock(into.tensorView, from.tensorView);
  joinClock(into.unfenced, from.unfenced);
  joinClock(into.published, from.published);
  joinClocks(into.tensorOperations, from.tensorOperations);
  joinClocks(into.observed, from.observed);
  joinFences(into, from);
}

/** The order of a warp before its clock ticks for the first time. */
function createWarpOrder(chain: number, thread = chain): WarpOrder {
  return {
    chain,
    thread,
    clock: createClock(),
    happened: createClock(),
    asyncView: createClock(),
    tensorView: createClock(),
    unfenced: createClock(),
    published: createClock(),
    tensorOperations: createClocks(),
    observed: createClocks(),
    strandChains: [],
    writeChains: [],
    fenced: new Map(),
  };
}

/** The part of a tracker that follows what warps know: as they begin, diverge and converge. */
export function createWarpTracker(
  chains: Chains,
): Pick<OrderTracker, 'createWarp' | 'divergeWarp' | 'convergeWarp'> {
  return {
    createWarp: () => {
      const order = createWarpOrder(chains.createAgent());
      tick(order);
      return order;
    },
    divergeWarp: ({ order }) => {
      const { thread, strandChains, writeChains } = order!;
      // The warp knows all events of lanes in a chain that they have given back.
      const strand = createWarpOrder(strandChains.pop() ?? chains.createAgent(), thread);
      const writes = writeChains.pop();
      if (writes !== undefined) strand.writeChains.push(writes);
      joinKnowledge(strand, order!);
      tick(strand);
      tick(order!);
      return strand;
    },
    convergeWarp: ({ order }, { order: strand }) => {
      joinKnowledge(order!, strand!);
      order!.strandChains.push(strand!.chain, ...strand!.strandChains);
      order!.writeChains.push(...strand!.writeChains);
    },
  };
}

/** The part of a tracker that follows asynchronous operations, from their issue until their warp knows that they are complete. */
export function createOperationTracker(
  chains: Chains,
  model: MemoryModel,
  reach: CtaReach,
): Pick<OrderTracker, 'begin' | 'unite' | 'finish'> {
  return {
    begin: (warp, kind, predecessors, reaches) => {
      const name = warp.current?.op ?? kind;
      const site = siteOf(warp.current);
      const order = beginOperation(chains, model, warp.order!, { kind, name, site, predecessors });
      tick(warp.order!);
      const { chain, time } = order;
      const who = `${name} of ${warp.name}`;
      for (const cta of reaches) {
        const tracked = cta === warp.cta ? order.tracked : null;
        reach.add({ cta, chain, time, kind, tracked, who, site });
      }
      return order;
    },
    unite: (orders) => {
      const whole = { ...createClocks(), happened: createClock() };
      for (const { clock, asyncView, happened } of orders) {
        joinClocks(whole, { clock, asyncView });
        joinClock(whole.happened, happened);
      }
      for (const { clock, asyncView, happened } of orders) {
        joinClocks({ clock, asyncView }, whole);
        joinClock(happened, whole.happened);
      }
    },
    finish: ({ order }, kind, operation) => {
      const { clock, asyncView, tensorView, unfenced } = order!;
      if (needsTensorFences(model, kind)) {
        joinClock(tensorView, operation.tensorClock);
        joinClock(unfenced, operation.clock);
      } else joinClock(clock, operation.clock);
      if (operation.isInWriteChain) includeInClock(clock, operation.chain, operation.time);
      joinClock(asyncView, operation.asyncView);
      joinClock(order!.happened, operation.happened);
    },
  };
}

/**
 * The part of a tracker that follows fences.
 *
 * @param fenceInitialisations called at a `fence.mbarrier_init`, before its warp's clock ticks
 */
export function createFenceTracker(
  fenceInitialisations: (order: WarpOrder) => void,
): Pick<OrderTracker, 'fence' | 'fenceMemory'> {
  return {
    fence: ({ order }, fence) => {
      const { clock, asyncView, tensorView, unfenced, published } = order!;
      if (fence === 'before_thread_sync') joinClock(clock, unfenced);
      else if (fence === 'after_thread_sync') joinClock(tensorView, clock);
      else if (fence === 'mbarrier_init') {
        joinClock(published, clock);
        fenceInitialisations(order!);
      } else joinClock(asyncView, clock);
      tick(order!);
    },
    fenceMemory: ({ order }, scope) => {
      fenceOrder(order!, scope);
      tick(order!);
    },
  };
}
