import { clusterAddress, splitClusterAddress, type InstructionOf } from '../isa/index.js';
import { count } from '../measure/index.js';
import {
  type ByteStore,
  checkBox,
  createByteStore,
  gatherBox,
  hasBox,
  loadBox,
  scatterBox,
  storeBox,
  touchedByBox,
} from '../memory/index.js';
import {
  report,
  reportViolation,
  type CtaState,
  type MachineState,
  type WarpState,
} from '../state.js';
import { issueStore } from './bulk-groups.js';
import { issue } from './issue.js';
import { completeBytes } from './mbarrier.js';
import {
  alwaysReady,
  noRegisters,
  type AsynchronousRecord,
  type InstructionDetails,
  type InstructionRecords,
  type VisitArea,
} from './record.js';
import {
  canReduce,
  checkContents,
  combinationOf,
  meaningOfStore,
  visitTensor,
} from './tensor-box.js';

type Load = 'cp.async.bulk.tensor.shared.global';
type Store = 'cp.async.bulk.tensor.global.shared';

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

/** The CTAs that receive a box, with the cluster address of the barrier that each copy counts on. */
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
  reads: {
    registers: noRegisters,
    memory: (_machine, cta, instruction, visit) => visitTensor(cta, instruction, visit),
  },
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
  meaning: 'moves',
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
    checkContents(machine, warp, instruction, 'reads');
    // One operation per CTA: the arrival of one CTA's box says nothing about the others'.
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
  writes: {
    registers: noRegisters,
    memory: (_machine, cta, instruction, visit) => visitTensor(cta, instruction, visit),
  },
  unit: {
    name: 'TMA',
    operation: 'bulk-store',
    cycles: ({ map }, { bulkBytes }) => map.boxBytes / bulkBytes,
    latency: () => 0,
  },
  meaning: meaningOfStore,
  describe,
  execute: (machine, warp, instruction) => {
    const { map, coordinates, source, name } = instruction;
    const { cta } = warp;
    if (reportViolation(machine, warp, checkBox(map, coordinates, cta.shared, source)))
      return 'refused';
    if (!canReduce(machine, warp, instruction)) return 'refused';
    const { boxBytes: bytes } = map;
    count(cta.counters.sharedBytes, `${name} → TMA`, bytes);
    count(cta.counters.globalBytes, `TMA → ${name}`, bytes);
    if (map.address === undefined) {
      const perform = () => storeBox(map, coordinates, cta.shared, source);
      warp.openBulkGroup.push(issue(machine, warp, store, instruction, { perform }));
      return;
    }
    checkContents(machine, warp, instruction, 'writes');
    let rows: ByteStore = createByteStore(0);
    issueStore(machine, warp, store, instruction, {
      read: () => {
        rows = gatherBox(map, cta.shared, source);
      },
      repeats: () => instruction.reduction === undefined && hasBox(map, coordinates, rows),
      write: () => scatterBox(map, coordinates, rows, combinationOf(machine, instruction)),
    });
    return;
  },
};

/**
 * Bulk tensor copies by the tensor memory accelerator. A load lands, and counts its bytes on the barrier, at a time of the
 * scheduler's choice, the whole box at once; the bytes of a box count in full where it reaches beyond the tensor. A store reads
 * shared memory at such a time, and writes at a later one; where the tensor's accesses are not followed, at the same. Each
 * element's reduction is a strong access. Source: PTX ISA, `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`.
 */
export const bulkCopyRecords: InstructionRecords<Load | Store> = {
  'cp.async.bulk.tensor.shared.global': load,
  'cp.async.bulk.tensor.global.shared': store,
};
