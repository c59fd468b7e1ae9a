import { siteOf, type MemoryScope } from '../isa/index.js';
import {
  type AccessClocks,
  type AccessKind,
  type EventClocks,
  type Proxy,
  Stamp,
} from './accesses.js';
import {
  copyClock,
  createClock,
  includeInClock,
  joinClock,
  tickClock,
  type Chains,
  type Clock,
  type Position,
} from './clock.js';
import { type MemoryModel, type OperationKind, operationKinds } from './memory-model.js';
import type { Actor, OperationOrder, OrderedRun, WarpOrder } from './order-tracker.js';

/** Whether an operation needs tcgen05 fences to be ordered with others. */
export function needsTensorFences({ tensorFences }: MemoryModel, kind: OperationKind): boolean {
  return tensorFences && operationKinds[kind].takesTensorFences;
}

/** Adds everything that is known to one to the clocks of the other. */
export function joinClocks(into: AccessClocks, { clock, asyncView }: AccessClocks): void {
  joinClock(into.clock, clock);
  joinClock(into.asyncView, asyncView);
}

/** The intersection of two clocks. */
function commonClock(one: Clock, other: Clock): Clock {
  const common = createClock();
  const chains = Math.min(one.times.length, other.times.length);
  for (let chain = 0; chain < chains; chain++)
    includeInClock(common, chain, Math.min(one.times[chain], other.times[chain]));
  return common;
}

/** An operation that a warp issues, as the tracker sees it. */
interface IssuedOperation {
  readonly kind: OperationKind;
  /** The instruction, and its place in the program. */
  readonly name: string;
  readonly site: string;
  /** The operations that the hardware performs before it; null where their order is not followed. */
  readonly predecessors: readonly (OperationOrder | null)[];
}

/**
 * The kind of operations whose completion a warp learns group by group, the oldest first, and in no other way: if one of them is
 * complete, so are the earlier ones. So one chain has room for all of them, also where they are in no order and hundreds are
 * under way: their clocks go without it. Source: PTX ISA, `cp.async.bulk.wait_group`.
 */
const awaitedInOrder: OperationKind = 'bulk-write';

/** The position of the next operation that is awaited in order. */
function nextInWriteChain(chains: Chains, { writeChains }: WarpOrder): Position {
  if (writeChains.length === 0) writeChains.push({ chain: chains.createAgent(), time: 0 });
  const [own] = writeChains;
  return { chain: own.chain, time: ++own.time };
}

/**
 * The order of an operation: it comes after the events that its warp knows and after its predecessors. A
 * tcgen05.commit makes known the warp's MMAs and copies alone, which are remembered for it in the warp's
 * `tensorOperations`; in time it comes after everything that the warp has done.
 * @param order of the warp, whose clock the caller advances
 */
export function beginOperation(
  chains: Chains,
  model: MemoryModel,
  order: WarpOrder,
  { kind, name, site, predecessors }: IssuedOperation,
): OperationOrder {
  const isFenced = needsTensorFences(model, kind);
  const isArrival = kind === 'commit' || kind === 'lane-copy-arrival';
  const happened = copyClock(order.happened);
  if (isArrival) joinClock(happened, order.clock);
  const tracked = kind === 'commit' ? copyClock(order.tensorOperations.clock) : null;
  const issued = isArrival ? copyClock(order.clock) : null;
  const from = kind === 'commit' ? order.tensorOperations : order;
  // An arrival that makes other operations known adds no events of its warp to them.
  const clock = kind === 'lane-copy-arrival' ? createClock() : copyClock(from.clock);
  const asyncView = kind === 'lane-copy-arrival' ? createClock() : copyClock(from.asyncView);
  const tensorClock = isFenced ? copyClock(order.tensorView) : clock;
  for (const predecessor of predecessors)
    if (predecessor !== null) {
      joinClocks({ clock, asyncView }, predecessor);
      joinClock(happened, predecessor.happened);
      if (isFenced) joinClock(tensorClock, predecessor.tensorClock);
    }
  // In a chain each event comes after those before it, in whichever clock one looks.
  const isInWriteChain = kind === awaitedInOrder;
  const { chain, time } = isInWriteChain
    ? nextInWriteChain(chains, order)
    : chains.begin(isFenced ? commonClock(clock, tensorClock) : clock);
  if (!isInWriteChain) includeInClock(clock, chain, time);
  if (kind === 'lane-copy' && !model.copyFences) includeInClock(asyncView, chain, time);
  if (isFenced) includeInClock(tensorClock, chain, time);
  if (operationKinds[kind].isCommitted) joinClocks(order.tensorOperations, { clock, asyncView });
  const { proxy } = operationKinds[kind];
  return {
    clock,
    tensorClock,
    asyncView,
    happened,
    issued: issued ?? clock,
    isInWriteChain,
    tracked,
    chain,
    time,
    proxy,
    name,
    site,
  };
}

/** The events ordered before an actor's next event, and the chain that the event belongs to. */
export function clocksOfActor({
  warp,
  order,
}: Actor): Required<EventClocks> & { readonly chain: number } {
  return order ?? warp.order!;
}

/** Properties of an access, apart from its actor. */
interface RecordedAccess {
  readonly kind: AccessKind;
  readonly proxy: Proxy;
  /** The scope of a strong access. */
  readonly scope?: MemoryScope | undefined;
  /** As of `Access`. */
  readonly repeats?: boolean | undefined;
}

/** The stamp of an event. */
export type RecordAccess = (machine: OrderedRun, actor: Actor, access: RecordedAccess) => Stamp;

/**
 * Makes stamps. All reads of one operation in one proxy are one event, and so are all reads of one
 * instruction of a warp, as long as no other event comes between; the same holds for writes.
 */
export function createAccessRecorder(): RecordAccess {
  let last: Stamp | null = null;
  let lastScope: MemoryScope | undefined;
  return ({ step }, actor, { kind, proxy, scope, repeats }) => {
    const { warp, order } = actor;
    const { chain } = clocksOfActor(actor);
    const time = order?.time ?? warp.order!.clock.times[chain];
    if (
      last !== null &&
      last.chain === chain &&
      last.time === time &&
      last.kind === kind &&
      last.proxy === proxy &&
      lastScope === scope &&
      last.repeats === (repeats === true) &&
      (order !== null || last.step === step)
    )
      return last;
    const site = order?.site ?? siteOf(warp.current);
    const who = order === null ? warp.name : `${order.name} of ${warp.name}`;
    const cta = warp.cta.number;
    last = new Stamp({ chain, time, kind, proxy, scope, repeats, step, site, who, cta });
    lastScope = scope;
    return last;
  };
}

/** Advances a warp's clock after an event that made it known to others: the warp's next events are later. */
export function tick({ chain, clock }: WarpOrder): void {
  tickClock(clock, chain);
}
