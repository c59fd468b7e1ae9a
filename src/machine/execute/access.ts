import { tensorMemoryColumns, type TensorMemoryRectangle } from '../memory/index.js';
import type { Actor } from '../order-tracker.js';
import type { CtaState, MachineState } from '../state.js';

/** Lanes that are followed together: no instruction touches fewer but tcgen05.cp.4x256b. */
const granuleLanes = 16;
const wordBytes = 4;
const chunkBytes = 16;

/** Tells the tracker of an access to tensor memory. */
export function accessTensor(
  machine: MachineState,
  actor: Actor,
  cta: CtaState,
  kind: 'read' | 'write',
  { firstLane, lanes, firstColumn, columns }: TensorMemoryRectangle,
): void {
  const firstRow = Math.floor(firstLane / granuleLanes);
  const endRow = Math.ceil((firstLane + lanes) / granuleLanes);
  machine.tracker?.access(machine, actor, {
    space: 'tensor',
    cta,
    kind,
    start: firstRow * tensorMemoryColumns + firstColumn,
    count: columns,
    stride: tensorMemoryColumns,
    rows: endRow - firstRow,
  });
}

/** Tells the tracker of reads of 16-byte chunks of shared memory; those that adjoin are one read. */
export function accessChunks(
  machine: MachineState,
  actor: Actor,
  cta: CtaState,
  chunks: Int32Array,
): void {
  const { tracker } = machine;
  if (tracker === null) return;
  for (let i = 0; i < chunks.length;) {
    const first = i;
    // A row's chunks adjoin upwards, or downwards where the swizzle turns them round.
    const step = chunks[i + 1] === chunks[i] - chunkBytes ? -chunkBytes : chunkBytes;
    do i++;
    while (i < chunks.length && chunks[i] === chunks[i - 1] + step);
    const start = Math.min(chunks[first], chunks[i - 1]) / wordBytes;
    const count = ((i - first) * chunkBytes) / wordBytes;
    tracker.access(machine, actor, { space: 'shared', cta, kind: 'read', start, count });
  }
}
