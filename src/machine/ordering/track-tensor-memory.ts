import { tensorMemoryColumns } from '../memory/index.js';
import { copyClock, joinClock } from './clock.js';
import { type RecordAccess, tick } from './operation-order.js';
import type { OrderFindings } from './order-findings.js';
import type { MemoryArea, OrderTracker } from './order-tracker.js';
import type { ShadowMemory } from './shadow-memory.js';
import type { TensorAllocations } from './lifetimes.js';

/** Granules of 16 lanes × 1 column. */
export const tensorGranules = 8 * tensorMemoryColumns;

/** State that the tracker keeps for one CTA's tensor memory. */
interface TrackedTensorMemory {
  readonly tensor: ShadowMemory;
  readonly allocations: TensorAllocations;
}

/** The part of a tracker that follows which tensor memory is allocated. */
export function createTensorTracker({
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
