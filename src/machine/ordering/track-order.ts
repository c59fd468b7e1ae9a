import { siteOf } from '../isa/index.js';
import { tensorMemoryColumns } from '../memory/index.js';
import {
  type BarrierHistory,
  createBarrierHistory,
  createNamedBarrierHistory,
  joinEventClocks,
  type NamedBarrierHistory,
} from './barrier-history.js';
import type { EventClocks } from './accesses.js';
import type { Mbarrier, NamedBarrier } from './barriers.js';
import { copyClock, createClock, includeInClock, joinClock, tickClock } from './clock.js';
import { createGridOrder, type GridOrder } from './grid-order.js';
import { createInitialisationFences } from './initialisation-fences.js';
import { createBarrierLives, createCtaReach, createTensorAllocations } from './lifetimes.js';
import type { MemoryModel } from './memory-model.js';
import {
  beginOperation,
  clocksOfActor,
  createAccessRecorder,
  joinClocks,
  needsTensorFences,
} from './operation-order.js';
import { createOrderFindings } from './order-findings.js';
import type {
  MemoryArea,
  OrderedCta,
  OrderedRun,
  OrderedWarp,
  OrderTracker,
  WarpOrder,
} from './order-tracker.js';
import { createRepeatedWaits } from './repeated-waits.js';
import { createShadowMemory } from './shadow-memory.js';
import {
  createClocks,
  createSynchronisation,
  fenceOrder,
  joinFences,
  synchronise,
} from './synchronisation.js';

const wordBytes = 4;
const mbarrierBytes = 8;
/** Granules of 16 lanes × 1 column. */
const tensorGranules = 8 * tensorMemoryColumns;

/** After what makes a warp's clock known to others, what it does next is later. */
function tick({ chain, clock }: WarpOrder): void {
  tickClock(clock, chain);
}

/** Adds what one agent knows to what another knows. */
function joinKnowledge(into: WarpOrder, from: WarpOrder): void {
  joinEventClocks(into, from);
  joinClock(into.tensorView, from.tensorView);
  joinClock(into.unfenced, from.unfenced);
  joinClock(into.published, from.published);
  joinClocks(into.tensorOperations, from.tensorOperations);
  joinClocks(into.observed, from.observed);
  joinFences(into, from);
}

/** What a finding calls a barrier of threads. */
function nameOf(barrier: NamedBarrier, { clusterBarrier }: OrderedRun): string {
  if (barrier.id >= 0) return `barrier ${barrier.id}`;
  return barrier === clusterBarrier ? 'the barrier of the cluster' : 'tcgen05.alloc of a pair';
}

/** A tracker for a cluster of these CTAs, before it runs. */
export function createOrderTracker(
  model: MemoryModel,
  ctas: readonly Pick<OrderedCta, 'shared'>[],
  grid: GridOrder = createGridOrder(model),
): OrderTracker {
  const { chains, accesses, shadow: globalShadow, released: globallyReleased } = grid;
  const record = createAccessRecorder(accesses);
  const findings = createOrderFindings(accesses);
  const memories = ctas.map(({ shared }) => ({
    shared: createShadowMemory(shared.limitBytes / wordBytes, accesses, {
      readFences: model.readFences,
      equalWrites: model.equalWrites,
      onUnorderedStrong: grid.dependences.add,
    }),
    tensor: createShadowMemory(tensorGranules, accesses),
    released: createSynchronisation(),
    allocations: createTensorAllocations(accesses, findings),
  }));
  const lives = createBarrierLives(model, accesses, findings);
  const reach = createCtaReach(model);
  const repeatedWaits = createRepeatedWaits(findings);
  const initialisations = createInitialisationFences(model, accesses, findings);
  const histories = new Map<Mbarrier, BarrierHistory>();
  const namedHistories = new Map<NamedBarrier, NamedBarrierHistory>();

  function historyOf(barrier: NamedBarrier): NamedBarrierHistory {
    let history = namedHistories.get(barrier);
    if (history === undefined) {
      history = createNamedBarrierHistory(accesses);
      namedHistories.set(barrier, history);
    }
    return history;
  }

  function createWarp(thread?: number): WarpOrder {
    const chain = chains.createAgent();
    const order: WarpOrder = {
      chain,
      thread: thread ?? chain,
      clock: createClock(),
      happened: createClock(),
      asyncView: createClock(),
      tensorView: createClock(),
      unfenced: createClock(),
      published: createClock(),
      tensorOperations: createClocks(),
      observed: createClocks(),
      fenced: new Map(),
    };
    tick(order);
    return order;
  }

  /** The words of a barrier become it, or are it no more. */
  function changeWords(
    machine: OrderedRun,
    warp: OrderedWarp,
    { cta: rank, offset }: Mbarrier,
    change: 'occupy' | 'vacate',
    stamp: number,
  ): void {
    const { shared } = memories[rank];
    const start = offset / wordBytes;
    const count = mbarrierBytes / wordBytes;
    // Elsewhere there can be none, which has been reported.
    if (!Number.isInteger(start) || start < 0 || start + count > shared.words) return;
    const area: MemoryArea = { space: 'shared', cta: machine.ctas[rank], start, count };
    for (const conflict of shared[change](area, stamp, warp.order!))
      findings.conflict(machine, area, conflict);
  }

  return {
    dependences: grid.dependences.list,
    createWarp: () => createWarp(),
    divergeWarp: ({ order }) => {
      const strand = createWarp(order!.thread);
      joinKnowledge(strand, order!);
      tick(order!);
      return strand;
    },
    convergeWarp: ({ order }, strand) => joinKnowledge(order!, strand.order!),
    access: (machine, actor, kind, area) => {
      const { space, cta, start, strong, repeats } = area;
      const { warp, order } = actor;
      // Tensor memory has one way to it; the proxies are those of shared and global memory.
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
    finish: ({ order }, kind, operation) => {
      const { clock, asyncView, tensorView, unfenced } = order!;
      if (needsTensorFences(model, kind)) {
        joinClock(tensorView, operation.tensorClock);
        joinClock(unfenced, operation.clock);
      } else joinClock(clock, operation.clock);
      joinClock(asyncView, operation.asyncView);
      joinClock(order!.happened, operation.happened);
    },
    fence: ({ order }, fence) => {
      const { clock, asyncView, tensorView, unfenced, published } = order!;
      if (fence === 'before_thread_sync') joinClock(clock, unfenced);
      else if (fence === 'after_thread_sync') joinClock(tensorView, clock);
      else if (fence === 'mbarrier_init') {
        joinClock(published, clock);
        initialisations.fence(order!);
      } else joinClock(asyncView, clock);
      tick(order!);
    },
    fenceMemory: ({ order }, scope) => {
      fenceOrder(order!, scope);
      tick(order!);
    },
    initialise: (machine, warp, barrier) => {
      const stamp = record(machine, { warp, order: null }, { kind: 'write', proxy: 'generic' });
      histories.set(barrier, createBarrierHistory(accesses, stamp));
      lives.begin(machine, warp.order!, barrier, stamp);
      initialisations.initialise(warp.order!, barrier, stamp);
      changeWords(machine, warp, barrier, 'occupy', stamp);
      tick(warp.order!);
    },
    invalidate: (machine, warp, barrier) => {
      const stamp = record(machine, { warp, order: null }, { kind: 'write', proxy: 'generic' });
      lives.end(machine, warp.order!, barrier, stamp);
      changeWords(machine, warp, barrier, 'vacate', stamp);
      histories.delete(barrier);
      tick(warp.order!);
    },
    arrive: (machine, actor, barrier, what) => {
      const history = histories.get(barrier)!;
      const stamp = record(machine, actor, { kind: 'arrive', proxy: 'generic' });
      lives.remember(barrier, stamp, actor.order);
      const { warp, order } = actor;
      const clocks = clocksOfActor(actor);
      const violations =
        what === 'arrival'
          ? history.arrive(stamp, clocks, order?.issued)
          : history[what === 'bytes' ? 'transact' : 'expect'](stamp, clocks);
      findings.violations(machine, barrier.cta, barrier.name, violations);
      if (what === 'bytes' && order?.proxy === 'async')
        initialisations.use(machine, barrier, clocks, stamp);
      if (order !== null) return;
      const { chain, clock } = warp.order!;
      const cta = machine.ctas[barrier.cta];
      if (cta !== warp.cta) {
        const [time, site] = [clock.times[chain], siteOf(warp.current)];
        reach.add({ cta, chain, time, kind: 'arrival', who: warp.name, site });
      }
      tick(warp.order!);
    },
    complete: (machine, barrier) => {
      const violations = histories.get(barrier)!.complete();
      findings.violations(machine, barrier.cta, barrier.name, violations);
    },
    observe: (machine, warp, barrier) => {
      const history = histories.get(barrier)!;
      const stamp = record(machine, { warp, order: null }, { kind: 'wait', proxy: 'generic' });
      lives.remember(barrier, stamp);
      const violations = history.observe(stamp, warp.order!);
      findings.violations(machine, barrier.cta, barrier.name, violations);
      repeatedWaits.observe(warp, barrier, history.phase - 1, stamp);
      joinEventClocks(warp.order!, history.completed);
      tick(warp.order!);
    },
    arriveAtNamed: (machine, warp, barrier, { waits, isRelaxed }) => {
      const order = warp.order!;
      let [stamp, clocks]: [number, EventClocks] = [0, order];
      if (isRelaxed) {
        // Only what fence.mbarrier_init came after is made known.
        const happened = copyClock(order.happened);
        joinClock(happened, order.clock);
        clocks = { clock: copyClock(order.published), asyncView: createClock(), happened };
        const position = chains.begin(clocks.clock);
        includeInClock(clocks.clock, position.chain, position.time);
        stamp = accesses.record({
          ...position,
          proxy: 'generic',
          kind: 'arrive',
          step: machine.step,
          site: siteOf(warp.current),
          who: warp.name,
        });
      } else stamp = record(machine, { warp, order: null }, { kind: 'arrive', proxy: 'generic' });
      const violations = historyOf(barrier).arrive(stamp, waits, clocks);
      findings.violations(machine, warp.cta.rank, nameOf(barrier, machine), violations);
      tick(order);
    },
    completeNamed: (barrier) => historyOf(barrier).complete(),
    leaveNamed: ({ order }, barrier, generation) =>
      joinEventClocks(order!, historyOf(barrier).leave(generation)),
    tellRepeatedWaits: repeatedWaits.tell,
    end: reach.checkEnds,
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
      // Of its own loads and stores a warp knows without a fence that they are complete.
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
