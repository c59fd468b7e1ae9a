import { siteOf } from '../isa/index.js';
import { type EventClocks, Stamp } from './accesses.js';
import {
  createNamedBarrierHistory,
  joinEventClocks,
  type NamedBarrierHistory,
} from './barrier-history.js';
import type { NamedBarrier } from './barriers.js';
import { copyClock, createClock, includeInClock, joinClock, type Chains } from './clock.js';
import { tick, type RecordAccess } from './operation-order.js';
import type { OrderFindings } from './order-findings.js';
import type { OrderTracker, OrderedRun, OrderedWarp } from './order-tracker.js';

/** The name of a barrier of threads in a finding. */
function nameOf(barrier: NamedBarrier, { clusterBarrier }: OrderedRun): string {
  if (barrier.id >= 0) return `barrier ${barrier.id}`;
  return barrier === clusterBarrier ? 'the barrier of the cluster' : 'tcgen05.alloc of a pair';
}

/** The stamp of a relaxed arrival, and the clocks that it makes known: only the events before fence.mbarrier_init. */
function relaxedArrival(
  chains: Chains,
  { step }: OrderedRun,
  { name, current, order }: OrderedWarp,
): { readonly stamp: Stamp; readonly clocks: EventClocks } {
  const happened = copyClock(order!.happened);
  joinClock(happened, order!.clock);
  const clocks = { clock: copyClock(order!.published), asyncView: createClock(), happened };
  const position = chains.begin(clocks.clock);
  includeInClock(clocks.clock, position.chain, position.time);
  const stamp = new Stamp({
    ...position,
    proxy: 'generic',
    kind: 'arrive',
    step,
    site: siteOf(current),
    who: name,
  });
  return { stamp, clocks };
}

/** The part of a tracker that follows named barriers, and those of a cluster and of a pair, before it runs. */
export function createNamedBarrierTracker({
  chains,
  record,
  findings,
}: {
  readonly chains: Chains;
  readonly record: RecordAccess;
  readonly findings: OrderFindings;
}): Pick<OrderTracker, 'arriveAtNamed' | 'completeNamed' | 'leaveNamed'> {
  const histories = new Map<NamedBarrier, NamedBarrierHistory>();

  function historyOf(barrier: NamedBarrier): NamedBarrierHistory {
    let history = histories.get(barrier);
    if (history === undefined) {
      history = createNamedBarrierHistory();
      histories.set(barrier, history);
    }
    return history;
  }

  return {
    arriveAtNamed: (machine, warp, barrier, { waits, isRelaxed }) => {
      const order = warp.order!;
      const { stamp, clocks } = isRelaxed
        ? relaxedArrival(chains, machine, warp)
        : {
            stamp: record(machine, { warp, order: null }, { kind: 'arrive', proxy: 'generic' }),
            clocks: order,
          };
      const violations = historyOf(barrier).arrive(stamp, waits, clocks);
      findings.violations(machine, warp.cta.rank, nameOf(barrier, machine), violations);
      tick(order);
    },
    completeNamed: (barrier) => historyOf(barrier).complete(),
    leaveNamed: ({ order }, barrier, generation) =>
      joinEventClocks(order!, historyOf(barrier).leave(generation)),
  };
}
