import { tensorMemoryColumns } from '../memory/index.js';
import { copyClock, joinClock } from './clock.js';
import { createGridOrder, type GridOrder } from './grid-order.js';
import { createCtaReach, createTensorAllocations, type TensorAllocations } from './lifetimes.js';
import type { MemoryModel } from './memory-model.js';
import { clocksOfActor, createAccessRecorder, tick, type RecordAccess } from './operation-order.js';
import { createOrderFindings, type OrderFindings } from './order-findings.js';
import type { MemoryArea, OrderTracker, OrderedCta } from './order-tracker.js';
import { createShadowMemory, type ShadowMemory } from './shadow-memory.js';
import { createSynchronisation, synchronise, type Synchronisation } from './synchronisation.js';
import { createBarrierTracker } from './track-barriers.js';
import { createNamedBarrierTracker } from './track-named-barriers.js';
import { createFenceTracker, createOperationTracker, createWarpTracker } from './track-warps.js';

/** Granules of 16 lanes × 1 column. */
const tensorGranules = 8 * tensorMemoryColumns;

/** State that the tracker keeps for one CTA's memory. */
interface TrackedMemory {
  readonly shared: ShadowMemory;
  readonly tensor: ShadowMemory;
  readonly allocations: TensorAllocations;
  readonly released: Synchronisation;
}

/** What the tracker of a cluster's accesses needs. */
interface AccessContext {
  readonly record: RecordAccess;
  readonly findings: OrderFindings;
  readonly memories: readonly TrackedMemory[];
}

/** The part of a tracker that follows accesses to memory. */
function createAccessTracker(
  { record, findings, memories }: AccessContext,
  { shadow: globalShadow, released: globallyReleased }: GridOrder,
): OrderTracker['access'] {
  return (machine, actor, kind, area) => {
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
  };
}

/** The part of a tracker that follows which tensor memory is allocated. */
function createTensorTracker({
  record,
  findings,
  memories,
}: AccessContext): Pick<OrderTracker, 'allocateTensor' | 'relinquishTensor' | 'endTensor'> {
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

/** A tracker for a cluster of these CTAs, before it runs. */
export function createOrderTracker(
  model: MemoryModel,
  ctas: readonly Pick<OrderedCta, 'shared'>[],
  grid: GridOrder = createGridOrder(model),
): OrderTracker {
  const { chains } = grid;
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
  const { fenceInitialisations, ...barriers } = createBarrierTracker({
    model,
    record,
    findings,
    reach,
    sharedMemories,
  });
  return {
    dependences: grid.dependences.list,
    ...createWarpTracker(chains),
    access: createAccessTracker({ record, findings, memories }, grid),
    ...createOperationTracker(chains, model, reach),
    ...createFenceTracker(fenceInitialisations),
    ...barriers,
    ...createNamedBarrierTracker({ chains, record, findings }),
    ...createTensorTracker({ record, findings, memories }),
    end: reach.checkEnds,
  };
}
