import type { MemoryModel } from './memory-model.js';
import type { OperationOrder, WarpOrder } from './order-tracker.js';
import {
  copyClock,
  createClock,
  includeInClock,
  joinClock,
  type AccessClocks,
  type Chains,
  type Clock,
} from './ordering/index.js';
import type { OperationKind } from './state.js';

/** The kinds of operations that a memory model may ask tcgen05 fences for. */
const tensorKinds: ReadonlySet<OperationKind> = new Set<OperationKind>([
  'mma',
  'copy',
  'tensor-load',
  'tensor-store',
]);

/** Whether an operation's order with others takes tcgen05 fences. */
export function needsTensorFences({ tensorFences }: MemoryModel, kind: OperationKind): boolean {
  return tensorFences && tensorKinds.has(kind);
}

/** What is known to one is known to the other from now on. */
export function joinClocks(into: AccessClocks, { clock, asyncView }: AccessClocks): void {
  joinClock(into.clock, clock);
  joinClock(into.asyncView, asyncView);
}

/** What two clocks both include. */
function commonClock(one: Clock, other: Clock): Clock {
  const common = createClock();
  const chains = Math.min(one.times.length, other.times.length);
  for (let chain = 0; chain < chains; chain++)
    includeInClock(common, chain, Math.min(one.times[chain], other.times[chain]));
  return common;
}

/** An operation that a warp issues, as far as order goes. */
export interface IssuedOperation {
  readonly kind: OperationKind;
  /** The instruction, and its place in the program. */
  readonly name: string;
  readonly site: string;
  /** The operations that the hardware performs before it; null where nobody keeps their order. */
  readonly predecessors: readonly (OperationOrder | null)[];
}

/**
 * The order of an operation: it comes after what its warp knows and after its predecessors. A
 * tcgen05.commit makes known the warp's MMAs and copies alone, which are remembered for it in the warp's
 * `tensorOperations`; its arrival comes after all that the warp knows.
 * @param order of the warp, whose clock the caller advances
 */
export function beginOperation(
  chains: Chains,
  model: MemoryModel,
  order: WarpOrder,
  { kind, name, site, predecessors }: IssuedOperation,
): OperationOrder {
  const isFenced = needsTensorFences(model, kind);
  const from = kind === 'commit' ? order.tensorOperations : order;
  const clock = copyClock(from.clock);
  const asyncView = copyClock(from.asyncView);
  const tensorClock = isFenced ? copyClock(order.tensorView) : clock;
  for (const predecessor of predecessors)
    if (predecessor !== null) {
      joinClocks({ clock, asyncView }, predecessor);
      if (isFenced) joinClock(tensorClock, predecessor.tensorClock);
    }
  // In a chain each event comes after those before it, in whichever clock one looks.
  const { chain, time } = chains.begin(isFenced ? commonClock(clock, tensorClock) : clock);
  includeInClock(clock, chain, time);
  if (isFenced) includeInClock(tensorClock, chain, time);
  const arrivalClock = kind === 'commit' ? copyClock(order.clock) : clock;
  if (kind === 'commit') joinClock(arrivalClock, clock);
  if (kind === 'mma' || kind === 'copy') joinClocks(order.tensorOperations, { clock, asyncView });
  return { clock, tensorClock, asyncView, arrivalClock, chain, time, name, site };
}
