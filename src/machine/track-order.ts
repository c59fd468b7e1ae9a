import type { Finding } from './finding.js';
import type { Mbarrier } from './mbarrier.js';
import type { MemoryModel } from './memory-model.js';
import type { NamedBarrier } from './named-barrier.js';
import type { Actor, MemoryAccess, OrderTracker, WarpOrder } from './order-tracker.js';
import {
  barrierViolationKinds,
  createAccessTable,
  createBarrierHistory,
  createChains,
  createClock,
  createNamedBarrierHistory,
  createShadowMemory,
  clockIncludes,
  conflictKinds,
  copyClock,
  includeInClock,
  joinClock,
  tickClock,
  type AccessClocks,
  type AccessKind,
  type BarrierHistory,
  type BarrierViolation,
  type Clock,
  type Conflict,
  type NamedBarrierHistory,
  type Proxy,
  type ShadowMemory,
} from './ordering/index.js';
import {
  siteOf,
  type CtaState,
  type MachineState,
  type OperationKind,
  type WarpState,
} from './state.js';

const sharedWords = 232_448 / 4;
/** Granules of 16 lanes × 1 column. */
const tensorColumns = 512;
const tensorGranules = 8 * tensorColumns;
const wordBytes = 4;

/** The kinds of operations that a memory model may ask tcgen05 fences for. */
const tensorKinds: ReadonlySet<string> = new Set(['mma', 'copy', 'tensor-load', 'tensor-store']);

/** What two clocks both include. */
function commonClock(one: Clock, other: Clock): Clock {
  const common = createClock();
  const chains = Math.min(one.times.length, other.times.length);
  for (let chain = 0; chain < chains; chain++)
    includeInClock(common, chain, Math.min(one.times[chain]!, other.times[chain]!));
  return common;
}

function join(into: AccessClocks, { clock, asyncView }: AccessClocks): void {
  joinClock(into.clock, clock);
  joinClock(into.asyncView, asyncView);
}

function clocksOf({ warp, order }: Actor): AccessClocks & { chain: number } {
  return order ?? warp.order!;
}

/** An operation, or an arrival from another CTA, that a CTA must not end before. */
interface Reach {
  readonly cta: CtaState;
  readonly chain: number;
  readonly time: number;
  readonly kind: OperationKind | 'arrival';
  readonly who: string;
  readonly site: string;
}

/** The words of a finding about memory: which region, from where on. */
function placeOf({ space, cta }: MemoryAccess, firstWord: number): string {
  if (space === 'tensor') return `tensor memory, column ${firstWord % tensorColumns}`;
  return `shared memory, ${cta.shared.regionAt(firstWord * wordBytes) ?? 'outside of every region'}`;
}

/** A tracker for a cluster of so many CTAs. */
export function createOrderTracker(model: MemoryModel, ctas: number): OrderTracker {
  const chains = createChains();
  const accesses = createAccessTable();
  const memories = Array.from({ length: ctas }, () => ({
    shared: createShadowMemory(sharedWords, accesses),
    tensor: createShadowMemory(tensorGranules, accesses),
    // By column, the stamp of its allocation.
    allocations: new Int32Array(tensorColumns),
  }));
  const barriers = new Map<Mbarrier, BarrierHistory>();
  const namedBarriers = new Map<NamedBarrier, NamedBarrierHistory>();
  // What last happened to a barrier in each chain, for its end; and the ends, by place.
  const lastAt = new Map<Mbarrier, Map<number, number>>();
  const ends = new Map<string, number>();
  // What last reached a CTA in each chain: later events of a chain come after it.
  const reached = new Map<string, Reach>();
  // An operation's reads in one proxy are one event, and so are its writes.
  let last = { order: null as Actor['order'], kind: '', proxy: '', stamp: 0 };

  function record(machine: MachineState, actor: Actor, kind: AccessKind, proxy: Proxy): number {
    const { warp, order } = actor;
    const { step } = machine;
    const isSame = last.order === order && last.kind === kind && last.proxy === proxy;
    if (order !== null && isSame) return last.stamp;
    const { chain } = clocksOf(actor);
    const time = order?.time ?? warp.order!.clock.times[chain];
    const stamp = accesses.record({
      ...{ chain, time, proxy, kind, step },
      site: order?.site ?? siteOf(warp.current),
      who: order === null ? warp.name : `${order.name} of ${warp.name}`,
    });
    last = { order, kind, proxy, stamp };
    return stamp;
  }

  function eventOf(stamp: number): Finding['accesses'] {
    if (stamp === 0) return [];
    const { who, site, step } = accesses.describe(stamp);
    return [{ who, site, step }];
  }

  function reportConflict(machine: MachineState, access: MemoryAccess, conflict: Conflict): void {
    const { kind, earlier, later, missing, firstWord } = conflict;
    const events = [...eventOf(earlier), ...eventOf(later)];
    const fence = missing === 'proxy-fence' ? ' but for fence.proxy.async' : '';
    const told = events.map(({ who, site }) => `${who} (${site})`).join(' and ');
    machine.findings.add({
      kind: kind === 'uninitialised' || kind === 'overwritten-unread' ? kind : 'race',
      message: `${placeOf(access, firstWord)}: ${conflictKinds[kind]}${fence}: ${told}`,
      ...{ cta: access.cta.rank, step: machine.step, accesses: events },
    });
  }

  function reportViolations(
    machine: MachineState,
    cta: number,
    name: string,
    violations: readonly BarrierViolation[],
  ): void {
    for (const { kind, event, unordered } of violations) {
      const events = [...eventOf(unordered), ...eventOf(event)];
      const told = events.map(({ who, site }) => `${who} (${site})`).join(' and ');
      machine.findings.add({
        ...{ kind: 'phase', cta, step: machine.step, accesses: events },
        message: `${name}: ${barrierViolationKinds[kind]}: ${told}`,
      });
    }
  }

  /** Remembers what happens to a barrier, which has to come before its end. */
  function remember(barrier: Mbarrier, stamp: number): void {
    lastAt.get(barrier)!.set(accesses.chainOf(stamp), stamp);
  }

  /** Reports events of a barrier's life that its end, or a later beginning, may come before. */
  function checkLife(
    machine: MachineState,
    { order }: WarpState,
    { cta, name }: Mbarrier,
    earlier: Iterable<number>,
    stamp: number,
  ): void {
    for (const event of earlier) {
      if (clockIncludes(order!.clock, accesses.chainOf(event), accesses.timeOf(event))) continue;
      const events = [...eventOf(event), ...eventOf(stamp)];
      const told = events.map(({ who, site }) => `${who} (${site})`).join(' and ');
      machine.findings.add({
        ...{ kind: 'phase', cta, step: machine.step, accesses: events },
        message: `${name}: its life may begin or end on the wrong side of an event: ${told}`,
      });
    }
  }

  /** After what makes a warp's clock known to others, what it does next is later. */
  function tick({ chain, clock }: WarpOrder): void {
    tickClock(clock, chain);
  }

  function historyOf(barrier: NamedBarrier): NamedBarrierHistory {
    let history = namedBarriers.get(barrier);
    if (history === undefined) {
      history = createNamedBarrierHistory(accesses);
      namedBarriers.set(barrier, history);
    }
    return history;
  }

  /** Reports an access to columns that may not be allocated yet. */
  function checkAllocation(
    machine: MachineState,
    { clock }: AccessClocks,
    access: MemoryAccess,
    stamp: number,
  ): void {
    const { allocations } = memories[access.cta.rank];
    const column = access.start % tensorColumns;
    const allocation = allocations[column];
    if (allocation === 0) return;
    if (clockIncludes(clock, accesses.chainOf(allocation), accesses.timeOf(allocation))) return;
    const events = [...eventOf(allocation), ...eventOf(stamp)];
    const told = events.map(({ who, site }) => `${who} (${site})`).join(' and ');
    machine.findings.add({
      ...{ kind: 'race', cta: access.cta.rank, step: machine.step, accesses: events },
      message: `tensor memory, column ${column}: used in no order with its allocation: ${told}`,
    });
  }

  function memoryOf({ rank }: CtaState, space: MemoryAccess['space']): ShadowMemory {
    return memories[rank][space];
  }

  return {
    createWarp: () => {
      const chain = chains.createAgent();
      const order: WarpOrder = {
        ...{ chain, clock: createClock(), asyncView: createClock(), tensorView: createClock() },
        ...{ unfenced: createClock(), published: createClock() },
        tensorOperations: { clock: createClock(), asyncView: createClock() },
      };
      tickClock(order.clock, chain);
      return order;
    },
    access: (machine, actor, access) => {
      // Tensor memory has one way to it; the proxies are those of shared memory.
      const isAsync = access.space === 'shared' && actor.order !== null;
      const stamp = record(machine, actor, access.kind, isAsync ? 'async' : 'generic');
      const memory = memoryOf(access.cta, access.space);
      const { asyncView, clock } = clocksOf(actor);
      const isFenced = access.space === 'tensor' && actor.order !== null;
      const clocks = { clock: isFenced ? actor.order.tensorClock : clock, asyncView };
      const conflicts = memory[access.kind](access, stamp, clocks);
      for (const conflict of conflicts) reportConflict(machine, access, conflict);
      if (access.space === 'tensor') checkAllocation(machine, { clock, asyncView }, access, stamp);
    },
    begin: (warp, kind, predecessors, reaches) => {
      const order = warp.order!;
      const isFenced = model.tensorFences && tensorKinds.has(kind);
      const from = kind === 'commit' ? order.tensorOperations : order;
      const clock = copyClock(from.clock);
      const asyncView = copyClock(from.asyncView);
      const tensorClock = isFenced ? copyClock(order.tensorView) : clock;
      for (const predecessor of predecessors)
        if (predecessor !== null) {
          join({ clock, asyncView }, predecessor);
          if (isFenced) joinClock(tensorClock, predecessor.tensorClock);
        }
      // In a chain each event comes after those before it, in whichever clock one looks.
      const { chain, time } = chains.begin(isFenced ? commonClock(clock, tensorClock) : clock);
      includeInClock(clock, chain, time);
      if (isFenced) includeInClock(tensorClock, chain, time);
      const arrivalClock = kind === 'commit' ? copyClock(order.clock) : clock;
      if (kind === 'commit') joinClock(arrivalClock, clock);
      if (kind === 'mma' || kind === 'copy') join(order.tensorOperations, { clock, asyncView });
      tick(order);
      const name = warp.current?.op ?? kind;
      const site = siteOf(warp.current);
      for (const cta of reaches) {
        const who = `${name} of ${warp.name}`;
        reached.set(`${cta.rank} ${chain}`, { cta, chain, time, kind, who, site });
      }
      return { clock, tensorClock, asyncView, arrivalClock, chain, time, name, site };
    },
    finish: ({ order }, kind, operation) => {
      const { clock, asyncView, tensorView, unfenced } = order!;
      if (model.tensorFences && tensorKinds.has(kind)) {
        joinClock(tensorView, operation.tensorClock);
        joinClock(unfenced, operation.clock);
      } else joinClock(clock, operation.clock);
      joinClock(asyncView, operation.asyncView);
    },
    fence: ({ order }, fence) => {
      const { clock, asyncView, tensorView, unfenced, published } = order!;
      if (fence === 'before_thread_sync') joinClock(clock, unfenced);
      else if (fence === 'after_thread_sync') joinClock(tensorView, clock);
      else if (fence === 'mbarrier_init') joinClock(published, clock);
      else joinClock(asyncView, clock);
      tick(order!);
    },
    initialise: (machine, warp, barrier) => {
      const stamp = record(machine, { warp, order: null }, 'write', 'generic');
      barriers.set(barrier, createBarrierHistory(accesses, stamp));
      const end = ends.get(`${barrier.cta} ${barrier.offset}`);
      if (end !== undefined) checkLife(machine, warp, barrier, [end], stamp);
      lastAt.set(barrier, new Map([[warp.order!.chain, stamp]]));
      tick(warp.order!);
    },
    invalidate: (machine, warp, barrier) => {
      const stamp = record(machine, { warp, order: null }, 'write', 'generic');
      checkLife(machine, warp, barrier, lastAt.get(barrier)!.values(), stamp);
      lastAt.delete(barrier);
      barriers.delete(barrier);
      ends.set(`${barrier.cta} ${barrier.offset}`, stamp);
      tick(warp.order!);
    },
    arrive: (machine, actor, barrier, what) => {
      const history = barriers.get(barrier)!;
      const stamp = record(machine, actor, 'arrive', 'generic');
      remember(barrier, stamp);
      const clocks = clocksOf(actor);
      const violations =
        what === 'arrival'
          ? history.arrive(stamp, clocks, actor.order?.arrivalClock ?? clocks.clock)
          : history.transact(stamp, clocks);
      reportViolations(machine, barrier.cta, barrier.name, violations);
      if (actor.order !== null) return;
      const { warp } = actor;
      const { chain, clock } = warp.order!;
      const cta = machine.ctas[barrier.cta];
      if (cta !== warp.cta) {
        const [time, site] = [clock.times[chain], siteOf(warp.current)];
        const reach: Reach = { cta, chain, time, kind: 'arrival', who: warp.name, site };
        reached.set(`${cta.rank} ${chain}`, reach);
      }
      tick(warp.order!);
    },
    complete: (machine, barrier) => {
      const violations = barriers.get(barrier)!.complete();
      reportViolations(machine, barrier.cta, barrier.name, violations);
    },
    observe: (machine, warp, barrier) => {
      const history = barriers.get(barrier)!;
      const stamp = record(machine, { warp, order: null }, 'wait', 'generic');
      remember(barrier, stamp);
      const violations = history.observe(stamp, warp.order!);
      reportViolations(machine, barrier.cta, barrier.name, violations);
      join(warp.order!, history.completed);
      tick(warp.order!);
    },
    arriveAtNamed: (machine, warp, barrier, { waits, isRelaxed }) => {
      const order = warp.order!;
      const history = historyOf(barrier);
      const name =
        barrier.id >= 0
          ? `barrier ${barrier.id}`
          : barrier === machine.clusterBarrier
            ? 'the barrier of the cluster'
            : 'tcgen05.alloc of a pair';
      if (isRelaxed) {
        // Only what fence.mbarrier_init came after is made known.
        const clock = copyClock(order.published);
        const position = chains.begin(clock);
        includeInClock(clock, position.chain, position.time);
        const stamp = accesses.record({
          ...{ ...position, proxy: 'generic', kind: 'arrive', step: machine.step },
          ...{ site: siteOf(warp.current), who: warp.name },
        });
        const clocks = { clock, asyncView: createClock() };
        reportViolations(machine, warp.cta.rank, name, history.arrive(stamp, waits, clocks));
      } else {
        const stamp = record(machine, { warp, order: null }, 'arrive', 'generic');
        reportViolations(machine, warp.cta.rank, name, history.arrive(stamp, waits, order));
      }
      tick(order);
    },
    completeNamed: (barrier) => historyOf(barrier).complete(),
    leaveNamed: ({ order }, barrier, generation) =>
      join(order!, historyOf(barrier).leave(generation)),
    end: (machine) => {
      for (const cta of machine.ctas) {
        const end = createClock();
        for (const { order } of cta.warps) joinClock(end, order!.clock);
        for (const { order } of cta.warps) joinClock(end, order!.unfenced);
        for (const reach of reached.values()) {
          const { chain, time, kind, who, site } = reach;
          if (reach.cta !== cta || clockIncludes(end, chain, time)) continue;
          machine.findings.add({
            kind: kind === 'arrival' ? 'exited-cta' : 'unfinished-operation',
            message: `CTA ${cta.rank} may end before ${who} (${site}) is done with it`,
            ...{ cta: cta.rank, step: machine.step, accesses: [{ who, site, step: machine.step }] },
          });
        }
      }
    },
    allocateTensor: (machine, warp, firstColumn, columns) => {
      const stamp = record(machine, { warp, order: null }, 'write', 'generic');
      const { allocations } = memories[warp.cta.rank];
      allocations.fill(stamp, firstColumn, firstColumn + columns);
      tick(warp.order!);
    },
    endTensor: (machine, warp, firstColumn, columns) => {
      const actor = { warp, order: null };
      const stamp = record(machine, actor, 'write', 'generic');
      const access: MemoryAccess = {
        ...{ space: 'tensor', cta: warp.cta, kind: 'write', start: firstColumn, count: columns },
        ...{ stride: tensorColumns, rows: tensorGranules / tensorColumns },
      };
      // Of its own loads and stores a warp knows without a fence that they are complete.
      const { clock: known, asyncView, unfenced } = warp.order!;
      const clock = copyClock(known);
      joinClock(clock, unfenced);
      const conflicts = memoryOf(warp.cta, 'tensor').end(access, stamp, { clock, asyncView });
      for (const conflict of conflicts) reportConflict(machine, access, conflict);
    },
  };
}
