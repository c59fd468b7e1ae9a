import { clusterAddress, splitClusterAddress, type InstructionOf } from '../isa/index.js';
import { count } from '../measure/index.js';
import { checkBox, loadBox, storeBox, touchedByBox } from '../memory/index.js';
import {
  report,
  reportViolation,
  type AsynchronousOperation,
  type CtaState,
  type MachineState,
  type WarpState,
} from '../state.js';
import { issue } from './issue.js';
import { completeBytes } from './mbarrier.js';
import {
  alwaysReady,
  movesNothing,
  noDetails,
  noRegisters,
  nothing,
  type AsynchronousRecord,
  type InstructionDetails,
  type InstructionRecord,
  type InstructionRecords,
  type VisitArea,
} from './record.js';

type Load = 'cp.async.bulk.tensor.shared.global';
type Store = 'cp.async.bulk.tensor.global.shared';
type WaitGroup = 'cp.async.bulk.wait_group' | 'cp.async.bulk.wait_group.read';

/** Visits a box where it lies in shared memory. */
function visitBox(
  cta: CtaState,
  map: InstructionOf<Load | Store>['map'],
  address: number,
  visit: VisitArea,
): void {
  const { firstWord, words } = touchedByBox(map, address);
  visit({ space: 'shared', cta, start: firstWord, count: words });
}

function describe({ name, coordinates, map }: InstructionOf<Load | Store>): InstructionDetails {
  return { name, coordinates: coordinates.join(', '), bytes: map.boxBytes };
}

/** The CTAs that get a box, with the cluster address of the barrier that each copy counts on. */
function copiesOf(
  machine: MachineState,
  { cta }: WarpState,
  { barrier, multicast }: InstructionOf<Load>,
  report: (what: string) => void,
): readonly { readonly cta: CtaState; readonly barrier: number }[] {
  if (multicast === undefined) return [{ cta, barrier }];
  const { rank: named, offset } = splitClusterAddress(barrier);
  return multicast.ctas.flatMap((rank) => {
    const target = machine.ctas[rank];
    if (target === undefined) {
      report(`there is no CTA ${rank} in a cluster of ${machine.ctas.length}`);
      return [];
    }
    const counting = multicast.group === 1 ? rank : rank - (rank % 2) + (named % 2);
    return [{ cta: target, barrier: clusterAddress(counting, offset) }];
  });
}

const load: AsynchronousRecord<Load> = {
  ready: alwaysReady,
  isWait: false,
  reads: nothing,
  writes: {
    registers: noRegisters,
    memory: (_machine, cta, { map, destination }, visit) => visitBox(cta, map, destination, visit),
  },
  unit: {
    name: 'TMA',
    operation: 'bulk-load',
    cycles: ({ map }, { bulkBytes }) => map.boxBytes / bulkBytes,
    latency: ({ bulkLatency }) => bulkLatency,
  },
  describe,
  execute: (machine, warp, instruction) => {
    const { map, coordinates, destination, name } = instruction;
    const { cta } = warp;
    if (reportViolation(machine, warp, checkBox(map, coordinates, cta.shared, destination)))
      return 'refused';
    const copies = copiesOf(machine, warp, instruction, (what) =>
      report(machine, warp, 'instruction-shape', what),
    );
    const { boxBytes: bytes } = map;
    count(cta.counters.globalBytes, `${name} → TMA`, bytes);
    // One operation a CTA: that one has its box tells nothing of the others.
    for (const { cta: target, barrier } of copies) {
      count(target.counters.sharedBytes, `TMA → ${name}`, bytes);
      const { rank } = splitClusterAddress(barrier);
      issue(machine, warp, load, instruction, {
        ctas: [target],
        reaches: [target, ...machine.ctas.filter((one) => one.rank === rank && one !== target)],
        perform: (actor) => {
          loadBox(map, coordinates, target.shared, destination);
          completeBytes(machine, actor, barrier, bytes);
        },
      });
    }
    return;
  },
};

const store: AsynchronousRecord<Store> = {
  ready: alwaysReady,
  isWait: false,
  reads: {
    registers: noRegisters,
    memory: (_machine, cta, { map, source }, visit) => visitBox(cta, map, source, visit),
  },
  writes: nothing,
  unit: {
    name: 'TMA',
    operation: 'bulk-store',
    cycles: ({ map }, { bulkBytes }) => map.boxBytes / bulkBytes,
    latency: () => 0,
  },
  describe,
  execute: (machine, warp, instruction) => {
    const { map, coordinates, source, name } = instruction;
    const { cta } = warp;
    if (reportViolation(machine, warp, checkBox(map, coordinates, cta.shared, source)))
      return 'refused';
    const { boxBytes: bytes } = map;
    count(cta.counters.sharedBytes, `${name} → TMA`, bytes);
    count(cta.counters.globalBytes, `TMA → ${name}`, bytes);
    const operation = issue(machine, warp, store, instruction, {
      perform: () => storeBox(map, coordinates, cta.shared, source),
    });
    warp.openBulkGroup.push(operation);
    return;
  },
};

/** The groups that wait_group waits for. */
function groupsToWaitFor({ bulkGroups }: WarpState, pending: number): AsynchronousOperation[] {
  return bulkGroups.slice(0, Math.max(bulkGroups.length - pending, 0)).flat();
}

/** wait_group, whose two forms wait for the same here. */
const waitGroup: InstructionRecord<WaitGroup> = {
  ...movesNothing,
  ready: {
    isReady: (_machine, warp, { pending }) =>
      groupsToWaitFor(warp, pending).every(({ isDone }) => isDone),
    waitsFor: (_machine, warp, { pending }) =>
      `${groupsToWaitFor(warp, pending).filter(({ isDone }) => !isDone).length} bulk stores`,
    readyTime: (_machine, warp, { pending }) =>
      Math.max(0, ...groupsToWaitFor(warp, pending).map(({ doneAt }) => doneAt)),
  },
  isWait: true,
  describe: noDetails,
  execute: ({ tracker }: MachineState, warp, { pending }) => {
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
export const bulkCopyRecords: InstructionRecords<
  Load | Store | WaitGroup | 'cp.async.bulk.commit_group'
> = {
  'cp.async.bulk.tensor.shared.global': load,
  'cp.async.bulk.tensor.global.shared': store,
  'cp.async.bulk.commit_group': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (_machine, warp) => {
      warp.bulkGroups.push(warp.openBulkGroup);
      warp.openBulkGroup = [];
    },
  },
  'cp.async.bulk.wait_group': waitGroup,
  'cp.async.bulk.wait_group.read': waitGroup,
};
