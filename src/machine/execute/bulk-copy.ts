import { count } from '../counters.js';
import { splitClusterAddress } from '../instruction.js';
import { checkBox, loadBox, storeBox, touchedByBox } from '../memory/index.js';
import { issue } from '../operations.js';
import {
  reportViolation,
  type AsynchronousOperation,
  type MachineState,
  type WarpState,
} from '../state.js';
import type { InstructionDefinitions } from './definition.js';
import { completeBytes } from './mbarrier.js';

function isDone({ isDone }: AsynchronousOperation): boolean {
  return isDone;
}

/** The groups that wait_group waits for. */
function groupsToWaitFor({ bulkGroups }: WarpState, pending: number): AsynchronousOperation[] {
  return bulkGroups.slice(0, Math.max(bulkGroups.length - pending, 0)).flat();
}

interface WaitGroup {
  readonly pending: number;
}

/** wait_group, whose two forms wait for the same here. */
const waitGroup = {
  isReady: (_machine: MachineState, warp: WarpState, { pending }: WaitGroup) =>
    groupsToWaitFor(warp, pending).every(isDone),
  waitsFor: (_machine: MachineState, warp: WarpState, { pending }: WaitGroup) =>
    `${groupsToWaitFor(warp, pending).filter((operation) => !operation.isDone).length} bulk stores`,
  readyTime: (_machine: MachineState, warp: WarpState, { pending }: WaitGroup) =>
    Math.max(0, ...groupsToWaitFor(warp, pending).map(({ doneAt }) => doneAt)),
  execute: ({ tracker }: MachineState, warp: WarpState, { pending }: WaitGroup) => {
    for (const { kind, order } of groupsToWaitFor(warp, pending))
      if (order !== null) tracker?.finish(warp, kind, order);
    warp.bulkGroups.splice(0, Math.max(warp.bulkGroups.length - pending, 0));
  },
};

/**
 * Bulk tensor copies by the tensor memory accelerator. A load lands, and counts its bytes on the
 * barrier, at a time of the scheduler's choice, the whole box at once; the bytes of a box count in full
 * where it reaches beyond the tensor. A store reads shared memory at such a time; it is performed when
 * it has read, so wait_group.read and wait_group wait for the same here. Source: PTX ISA,
 * `cp.async.bulk.tensor`, `cp.async.bulk.commit_group`, `cp.async.bulk.wait_group`.
 */
export const bulkCopyDefinitions: InstructionDefinitions<
  | 'cp.async.bulk.tensor.shared.global'
  | 'cp.async.bulk.tensor.global.shared'
  | 'cp.async.bulk.commit_group'
  | 'cp.async.bulk.wait_group'
  | 'cp.async.bulk.wait_group.read'
> = {
  'cp.async.bulk.tensor.shared.global': {
    execute: (machine, warp, { map, coordinates, destination, barrier, name }) => {
      const { cta } = warp;
      if (reportViolation(machine, warp, checkBox(map, coordinates, cta.shared, destination)))
        return;
      const { boxBytes: bytes } = map;
      const { firstWord, words } = touchedByBox(map, destination);
      count(cta.counters.sharedBytes, `TMA → ${name}`, bytes);
      count(cta.counters.globalBytes, `${name} → TMA`, bytes);
      const { rank: target } = splitClusterAddress(barrier);
      const { bulkBytes, bulkLatency } = machine.rates;
      issue(machine, warp, {
        kind: 'bulk-load',
        unit: 'TMA',
        cycles: bytes / bulkBytes,
        latency: bulkLatency,
        reaches: [cta, ...machine.ctas.filter(({ rank }) => rank === target && rank !== cta.rank)],
        perform: ({ order }) => {
          loadBox(map, coordinates, cta.shared, destination);
          const actor =
            order === null ? { warp, order } : ({ warp, order, kind: 'bulk-load' } as const);
          machine.tracker?.access(machine, actor, {
            space: 'shared',
            cta,
            kind: 'write',
            start: firstWord,
            count: words,
          });
          completeBytes(machine, actor, barrier, bytes);
        },
      });
    },
  },
  'cp.async.bulk.tensor.global.shared': {
    execute: (machine, warp, { map, coordinates, source, name }) => {
      const { cta } = warp;
      if (reportViolation(machine, warp, checkBox(map, coordinates, cta.shared, source))) return;
      const { boxBytes: bytes } = map;
      const { firstWord, words } = touchedByBox(map, source);
      count(cta.counters.sharedBytes, `${name} → TMA`, bytes);
      count(cta.counters.globalBytes, `TMA → ${name}`, bytes);
      const operation = issue(machine, warp, {
        kind: 'bulk-store',
        unit: 'TMA',
        cycles: bytes / machine.rates.bulkBytes,
        perform: ({ order }) => {
          storeBox(map, coordinates, cta.shared, source);
          if (order === null) return;
          machine.tracker?.access(
            machine,
            { warp, order, kind: 'bulk-store' },
            {
              space: 'shared',
              cta,
              kind: 'read',
              start: firstWord,
              count: words,
            },
          );
        },
      });
      warp.openBulkGroup.push(operation);
    },
  },
  'cp.async.bulk.commit_group': {
    execute: (_machine, warp) => {
      warp.bulkGroups.push(warp.openBulkGroup);
      warp.openBulkGroup = [];
    },
  },
  'cp.async.bulk.wait_group': waitGroup,
  'cp.async.bulk.wait_group.read': waitGroup,
};
