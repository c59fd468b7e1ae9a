import {
  clusterAddress,
  siteOf,
  splitClusterAddress,
  type InstructionOf,
  type LanePlaces,
} from '../../isa/index.js';
import { copyOfBytes, moveBytes } from '../../memory/index.js';
import { report, type CtaState, type MachineState, type WarpState } from '../../state.js';
import { issueStore } from '../bulk-groups.js';
import { issue } from '../issue.js';
import { completeBytes } from '../mbarrier.js';
import {
  alwaysReady,
  noRegisters,
  type AsynchronousRecord,
  type InstructionDetails,
  type InstructionRecords,
  type Touched,
} from '../record.js';
import {
  hasAtomic,
  elementReductions,
  meaningOfCopy,
  reduceElements,
} from './atomic-operations.js';
import { visitPlaces } from './lane-areas.js';
import { forEachPlace } from './lane-places.js';
import type { LanePlace } from './locate-place.js';
import { createTrafficCounter } from './loads-and-stores.js';

type Op = 'cp.async.bulk.shared' | 'cp.async.bulk.global';
type BulkCopy = InstructionOf<Op>;

const reads: Touched<Op> = {
  registers: noRegisters,
  memory: (machine, cta, { source, destination, reduction }, visit) => {
    visitPlaces(machine, cta, { places: source, use: 'reads' }, visit);
    if (reduction !== null)
      visitPlaces(
        machine,
        cta,
        { places: destination, use: 'updates', strong: elementReductions },
        visit,
      );
  },
};

const writes: Touched<Op> = {
  registers: noRegisters,
  memory: (machine, cta, { destination, reduction }, visit) =>
    reduction === null
      ? visitPlaces(machine, cta, { places: destination, use: 'writes' }, visit)
      : visitPlaces(
          machine,
          cta,
          { places: destination, use: 'updates', strong: elementReductions },
          visit,
        ),
};

/** The place of the one lane; undefined where it is illegal, which is reported. */
function placeOf(
  machine: MachineState,
  warp: WarpState,
  places: LanePlaces,
  use: 'reads' | 'writes' | 'updates',
  direction: (name: string) => string,
): LanePlace | undefined {
  const traffic = createTrafficCounter(warp.cta, direction);
  let found: LanePlace | undefined;
  forEachPlace(machine, warp, places, use, (place) => {
    found = { ...place };
    traffic.add(place, places.bytes);
  });
  traffic.end();
  return found;
}

/** The error in a copy, whatever lies at its addresses. */
function problemOf({ source: { bytes }, reduction }: BulkCopy): string | null {
  if (!(Number.isInteger(bytes / 16) && bytes >= 0))
    return `a bulk copy of ${bytes} bytes; a multiple of 16 is due`;
  if (reduction === null) return null;
  const { operation, type } = reduction;
  return hasAtomic(operation, type) ? null : `there is no reduction ${operation} of ${type}`;
}

/** Whether an instruction cannot be carried out, which is reported. */
function isRefused(machine: MachineState, warp: WarpState, instruction: BulkCopy): boolean {
  const problem = problemOf(instruction);
  if (problem !== null) report(machine, warp, 'instruction-shape', problem);
  return problem !== null;
}

/** The two parts of a copy, to be done when the operation is performed; nothing of a copy of no bytes. */
interface Movement {
  readonly read: () => void;
  readonly write: () => void;
  /** The CTA that receives the bytes. */
  readonly target: CtaState;
}

/** The movement of a copy's bytes; null where a place is illegal. */
function movementOf(
  machine: MachineState,
  warp: WarpState,
  instruction: BulkCopy,
): Movement | null {
  const { source, destination, reduction } = instruction;
  const nothing = () => undefined;
  if (source.bytes === 0) return { read: nothing, write: nothing, target: warp.cta };
  const from = placeOf(machine, warp, source, 'reads', (name) => `${name} → bulk copy`);
  const use = reduction === null ? 'writes' : 'updates';
  const to = placeOf(machine, warp, destination, use, (name) => `bulk copy → ${name}`);
  if (from === undefined || to === undefined) return null;
  const isShared = destination.space !== 'global';
  const { bytes } = source;
  let read = from.store;
  return {
    target: to.cta,
    read: () => {
      read = copyOfBytes(from.store, from.offset, bytes);
    },
    write: () => {
      if (reduction === null) moveBytes(read, 0, to.store, to.offset, bytes);
      else {
        const { tracer } = machine;
        const trace = tracer && { tracer, site: siteOf(instruction) };
        reduceElements(reduction, to, { store: read, offset: 0 }, bytes, { isShared, trace });
      }
    },
  };
}

function describe({ source, reduction }: BulkCopy): InstructionDetails {
  const { bytes } = source;
  return reduction === null ? { bytes } : { bytes, ...reduction };
}

/** The copies of a multicast, one for each CTA that gets the bytes. */
function copiesOf(
  machine: MachineState,
  warp: WarpState,
  instruction: InstructionOf<'cp.async.bulk.shared'>,
): readonly InstructionOf<'cp.async.bulk.shared'>[] {
  const { multicast, destination, barrier } = instruction;
  if (multicast === null) return [instruction];
  const inCta = (rank: number, address: number): number =>
    address < 0 ? address : clusterAddress(rank, splitClusterAddress(address).offset);
  return multicast.flatMap((rank) => {
    if (machine.ctas[rank] === undefined) {
      const message = `there is no CTA ${rank} in a cluster of ${machine.ctas.length}`;
      report(machine, warp, 'instruction-shape', message);
      return [];
    }
    const addresses = destination.addresses.map((address) => inCta(rank, address));
    const place = { ...destination, addresses };
    return [{ ...instruction, destination: place, barrier: inCta(rank, barrier) }];
  });
}

const toShared: AsynchronousRecord<'cp.async.bulk.shared'> = {
  ready: alwaysReady,
  isWait: false,
  reads,
  writes,
  unit: {
    name: 'TMA',
    operation: 'bulk-load',
    cycles: ({ source }, { bulkBytes }) => source.bytes / bulkBytes,
    latency: ({ bulkLatency }) => bulkLatency,
  },
  meaning: meaningOfCopy,
  describe,
  execute: (machine, warp, instruction) => {
    if (isRefused(machine, warp, instruction)) return 'refused';
    // One operation per CTA: the arrival of one CTA's bytes says nothing about the others'.
    for (const copy of copiesOf(machine, warp, instruction)) {
      const movement = movementOf(machine, warp, copy);
      if (movement === null) continue;
      const { rank } = splitClusterAddress(copy.barrier);
      const reached = machine.ctas.filter((one) => one === movement.target || one.rank === rank);
      issue(machine, warp, toShared, copy, {
        reaches: copy.source.space === 'global' ? reached : [...new Set([...reached, warp.cta])],
        perform: (actor) => {
          movement.read();
          movement.write();
          completeBytes(machine, actor, copy.barrier, copy.source.bytes);
        },
      });
    }
    return;
  },
};

const toGlobal: AsynchronousRecord<'cp.async.bulk.global'> = {
  ready: alwaysReady,
  isWait: false,
  reads,
  writes,
  unit: {
    name: 'TMA',
    operation: 'bulk-store',
    cycles: ({ source }, { bulkBytes }) => source.bytes / bulkBytes,
    latency: () => 0,
  },
  meaning: meaningOfCopy,
  describe,
  execute: (machine, warp, instruction) => {
    if (isRefused(machine, warp, instruction)) return 'refused';
    const movement = movementOf(machine, warp, instruction);
    if (movement === null) return 'refused';
    issueStore(machine, warp, toGlobal, instruction, movement);
    return;
  },
};

/**
 * Bulk copies and reductions without a tensor map. One is performed at a time of the scheduler's choice, all bytes at once;
 * one to shared memory counts its bytes on a barrier then; one to global memory reads, writes some time after that, and belongs
 * to a bulk group. They take the
 * async proxy. Source: PTX ISA, `cp.async.bulk`, `cp.reduce.async.bulk`.
 */
export const plainBulkCopyRecords: InstructionRecords<Op> = {
  'cp.async.bulk.shared': toShared,
  'cp.async.bulk.global': toGlobal,
};
