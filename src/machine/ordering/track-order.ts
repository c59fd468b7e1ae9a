import { siteOf } from '../isa/index.js';
import { tensorMemoryColumns } from '../memory/index.js';
import { joinEventClocks } from './barrier-history.js';
import { copyClock, createClock, includeInClock, joinClock } from './clock.js';
import { createGridOrder, type GridOrder } from './grid-order.js';
import { createCtaReach, createTensorAllocations, type TensorAllocations } from './lifetimes.js';
import type { MemoryModel } from './memory-model.js';
import {
  beginOperation,
  clocksOfActor,
  createAccessRecorder,
  joinClocks,
  needsTensorFences,
  tick,
  type RecordAccess,
} from './operation-order.js';
import { createOrderFindings, type OrderFindings } from './order-findings.js';
import type { MemoryArea, OrderTracker, OrderedCta, WarpOrder } from './order-tracker.js';
import { createShadowMemory, type ShadowMemory } from './shadow-memory.js';
import {
  createClocks,
  createSynchronisation,
  fenceOrder,
  joinFences,
  synchronise,
} from './synchronisation.js';
import { createBarrierTracker } from './track-barriers.js';

/** Granules of 16 lanes × 1 column. */
const tensorGranules = 8 * tensorMemoryColumns;

/** State that the tracker keeps for one CTA's tensor memory. */
interface TrackedTensorMemory {
  readonly tensor: ShadowMemory;
  readonly allocations: TensorAllocations;
}

/** The part of a tracker that follows which tensor memory is allocated. */
function createTensorTracker({
  record,
  findings,
  memories,
}: {
  readonly record: RecordAccess;
  readonly findings: OrderFindings;
  readonly memories: readonly TrackedTensorMemory[];
}): Pick<OrderTracker, 'allocateTensor' | 'relinquishTensor' | 'endTensor'> {
  return {
    allocateTensor: (machine, warp, firstColumn, columns) => {
      const stamp = record(machine, { warp, order: null }, { kind: 'write', proxy: 'generic' });
      const { allocations } = memories[warp.cta.rank];
      const { clock } = warp.order!;
      const event = { kind: 'alloc', firstColumn, columns, clock, stamp } as const;
      allocations.happen(machine, warp.cta.rank, event);
      tick(warp.order!);
    },
    relinquishTensor: (machine, warp) => {
      const stamp = record(machine, { warp, order: null }, { kind: 'write', proxy: 'generic' });
      const { clock } = warp.order!;
      const { allocations } = memories[warp.cta.rank];
      const event = { kind: 'relinquish', firstColumn: 0, columns: 0, clock, stamp } as const;
      allocations.happen(machine, warp.cta.rank, event);
      tick(warp.order!);
    },
    endTensor: (machine, warp, firstColumn, columns) => {
      const stamp = record(machine, { warp, order: null }, { kind: 'write', proxy: 'generic' });
      const area: MemoryArea = {
        space: 'tensor',
        cta: warp.cta,
        start: firstColumn,
        count: columns,
        stride: tensorMemoryColumns,
        rows: tensorGranules / tensorMemoryColumns,
      };
      // A warp knows without a fence that its own loads and stores are complete.
      const { clock: known, asyncView, unfenced } = warp.order!;
      const clock = copyClock(known);
      joinClock(clock, unfenced);
      const { tensor, allocations } = memories[warp.cta.rank];
      const event = { kind: 'dealloc', firstColumn, columns, clock: known, stamp } as const;
      allocations.happen(machine, warp.cta.rank, event);
      for (const conflict of tensor.end(area, stamp, { clock, asyncView }))
        findings.conflict(machine, area, conflict);
    },
  };
}

const wordBytes = 4;

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

/** A tracker for a cluster of these CTAs, before it runs. */
export function createOrderTracker(
  model: MemoryModel,
  ctas: readonly Pick<OrderedCta, 'shared'>[],
  grid: GridOrder = createGridOrder(model),
): OrderTracker {
  const { chains, shadow: globalShadow, released: globallyReleased } = grid;
  const record = createAccessRecorder();
  const findings = createOrderFindings();
  const memories = ctas.map(({ shared }) => ({
    shared: createShadowMemory(shared.limitBytes / wordBytes, {
      readFences: model.readFences,
      equalWrites: model.equalWrites,
      onUnorderedStrong: (earlier, later) => {
        grid.dependences.add(earlier, later);
        grid.onDependence(earlier);
      },
    }),
    tensor: createShadowMemory(tensorGranules),
    released: createSynchronisation(),
    allocations: createTensorAllocations(findings, grid.onDependence),
  }));
  const reach = createCtaReach(model);
  const sharedMemories = memories.map(({ shared }) => shared);
  const tracked = { model, chains, record, findings, reach, sharedMemories };
  const barriers = createBarrierTracker(tracked);

  /** The order of a warp before its clock ticks for the first time. */
  function createWarp(chain: number, thread = chain): WarpOrder {
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

  return {
    dependences: grid.dependences.list,
    createWarp: () => {
      const order = createWarp(chains.createAgent());
      tick(order);
      return order;
    },
    divergeWarp: ({ order }) => {
      const { thread, strandChains, writeChains } = order!;
      // The warp knows all events of lanes in a chain that they have given back.
      const strand = createWarp(strandChains.pop() ?? chains.createAgent(), thread);
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
    access: (machine, actor, kind, area) => {
      const { space, cta, start, strong, repeats } = area;
      const { warp, order } = actor;
      // Tensor memory is accessed in one way only; proxies belong to shared and global memory.
      const proxy = space === 'tensor' ? 'generic' : (order?.proxy ?? 'generic');
      const stamp = record(machine, actor, { kind, proxy, scope: strong?.scope, repeats });
      const { asyncView, clock } = clocksOfActor(actor);
      const isFenced = space === 'tensor' && order !== null;
      const clocks = { clock: isFenced ? order.tensorClock : clock, asyncView };
      const memory = memories[cta.rank];
      const conflicts =
        space === 'global'
          ? globalShadow.access(kind, area, stamp, clocks)
          : memory[space][kind](area, stamp, clocks);
      for (const conflict of conflicts) findings.conflict(machine, area, conflict);
      if (space === 'tensor') {
        memory.allocations.check(machine, cta.rank, clock, start % tensorMemoryColumns, stamp);
        return;
      }
      const released = space === 'global' ? globallyReleased : memory.released;
      const mayChange = strong === undefined ? kind === 'write' : order === null;
      if (mayChange && synchronise(released, warp, kind, area)) tick(warp.order!);
    },
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
    fence: ({ order }, fence) => {
      const { clock, asyncView, tensorView, unfenced, published } = order!;
      if (fence === 'before_thread_sync') joinClock(clock, unfenced);
      else if (fence === 'after_thread_sync') joinClock(tensorView, clock);
      else if (fence === 'mbarrier_init') {
        joinClock(published, clock);
        barriers.fenceInitialisations(order!);
      } else joinClock(asyncView, clock);
      tick(order!);
    },
    fenceMemory: ({ order }, scope) => {
      fenceOrder(order!, scope);
      tick(order!);
    },
    ...barriers,
    ...createTensorTracker({ record, findings, memories }),
    end: reach.checkEnds,
  };
}
