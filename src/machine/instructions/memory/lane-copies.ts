import { warpLanes, type InstructionOf } from '../../isa/index.js';
import { fillBytes, moveBytes, type BytePlace } from '../../memory/index.js';
import type { AsynchronousOperation, WarpState } from '../../state.js';
import { issue } from '../issue.js';
import { arrive, expectArrivals } from '../mbarrier.js';
import {
  alwaysReady,
  movesNothing,
  noDetails,
  noRegisters,
  nothing,
  type AsynchronousRecord,
  type InstructionRecords,
} from '../record.js';
import { groupsToAwait, waitForOperations } from '../wait-for-operations.js';
import { visitPlaces } from './lane-areas.js';
import { forEachPlace } from './lane-places.js';
import { createTrafficCounter } from './loads-and-stores.js';

type Arrive = 'cp.async.mbarrier.arrive' | 'cp.async.mbarrier.arrive.noinc';
type LaneCopy = InstructionOf<'cp.async'>;

/** The sources of the lanes that read anything, as one place for each size in bytes. */
function sourcesOf({ source, destination, sourceBytes }: LaneCopy): readonly LaneCopy['source'][] {
  // Almost always one size; each is checked by itself, since the number of bytes decides whether a
  // place lies outside.
  const sizes = [...new Set(sourceBytes)].filter((bytes) => bytes > 0);
  return sizes.map((bytes) => ({
    space: source.space,
    bytes,
    alignment: destination.bytes,
    addresses: source.addresses.map((address, lane) =>
      sourceBytes[lane] === bytes ? address : -1,
    ),
  }));
}

/** A place of its own: the one that lanes are visited with serves all of them. */
function placeOf({ store, offset }: BytePlace): BytePlace {
  return { store, offset };
}

const copy: AsynchronousRecord<'cp.async'> = {
  ready: alwaysReady,
  isWait: false,
  reads: {
    registers: noRegisters,
    memory: (machine, cta, instruction, visit) => {
      for (const places of sourcesOf(instruction))
        visitPlaces(machine, cta, { places, use: 'reads' }, visit);
    },
  },
  writes: {
    registers: noRegisters,
    memory: (machine, cta, { destination }, visit) =>
      visitPlaces(machine, cta, { places: destination, use: 'writes' }, visit),
  },
  unit: {
    name: 'load/store',
    operation: 'lane-copy',
    cycles: ({ destination }, { bulkBytes }) => (warpLanes * destination.bytes) / bulkBytes,
    latency: ({ bulkLatency }) => bulkLatency,
  },
  meaning: 'moves',
  describe: ({ destination: { bytes } }) => ({ bytes }),
  execute: (machine, warp, instruction) => {
    const { destination } = instruction;
    const chunks: { readonly lane: number; readonly from: BytePlace; readonly bytes: number }[] =
      [];
    const toShared = createTrafficCounter(warp.cta, (name) => `cp.async → ${name}`);
    const fromGlobal = createTrafficCounter(warp.cta, (name) => `${name} → cp.async`);
    // Illegal places are reported at issue; the bytes read are those present when the operation is
    // performed.
    for (const places of sourcesOf(instruction))
      forEachPlace(machine, warp, places, 'reads', (place, lane) => {
        const { bytes } = places;
        fromGlobal.add(place, bytes);
        chunks.push({ lane, from: placeOf(place), bytes });
      });
    const targets: (BytePlace | undefined)[] = [];
    forEachPlace(machine, warp, destination, 'writes', (place, lane) => {
      toShared.add(place, destination.bytes);
      targets[lane] = placeOf(place);
    });
    fromGlobal.end();
    toShared.end();
    const operation = issue(machine, warp, copy, instruction, {
      perform: () => {
        // Lanes that read nothing, or whose source is illegal, get zeros.
        for (const to of targets)
          if (to !== undefined) fillBytes(to.store, to.offset, destination.bytes, 0);
        for (const { lane, from, bytes } of chunks) {
          const to = targets[lane];
          if (to !== undefined) moveBytes(from.store, from.offset, to.store, to.offset, bytes);
        }
      },
    });
    warp.openCopyGroup.push(operation);
    return;
  },
};

/** All cp.async of a warp that it does not know to be complete. */
function copiesOf({ copyGroups, openCopyGroup }: WarpState): readonly AsynchronousOperation[] {
  return [...copyGroups.flat(), ...openCopyGroup];
}

/**
 * The record of an arrival when the warp's earlier cp.async are complete.
 *
 * @param isExpected whether the barrier has been initialised to expect it; else the phase expects it from now on
 */
function arrival(isExpected: boolean): AsynchronousRecord<Arrive> {
  const record: AsynchronousRecord<Arrive> = {
    ready: alwaysReady,
    isWait: false,
    reads: nothing,
    writes: nothing,
    unit: {
      name: 'load/store',
      operation: 'lane-copy-arrival',
      cycles: () => 0,
      latency: () => 0,
    },
    meaning: 'none',
    describe: ({ barrier, threads }) => ({ barrier, threads }),
    execute: (machine, warp, instruction) => {
      const { barrier, threads } = instruction;
      if (!isExpected) expectArrivals(machine, warp, barrier, threads);
      issue(machine, warp, record, instruction, {
        after: copiesOf(warp),
        perform: (actor) => arrive(machine, actor, barrier, threads),
      });
      return;
    },
  };
  return record;
}

/**
 * Copies by lanes that need no registers. Each warp instruction's bytes arrive at one moment that the scheduler
 * chooses after its issue, in no order with others, before a wait for its group, or before an arrival that
 * tracks it. They take the generic proxy. Source: PTX ISA, `cp.async`, `cp.async.commit_group`,
 * `cp.async.wait_group`, `cp.async.mbarrier.arrive`.
 */
export const laneCopyRecords: InstructionRecords<
  'cp.async' | 'cp.async.commit_group' | 'cp.async.wait_group' | 'cp.async.wait_all' | Arrive
> = {
  'cp.async': copy,
  'cp.async.commit_group': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (_machine, warp) => {
      warp.copyGroups.push(warp.openCopyGroup);
      warp.openCopyGroup = [];
    },
  },
  'cp.async.wait_group': waitForOperations({
    name: 'cp.async',
    operations: ({ copyGroups }, { pending }) =>
      copyGroups.slice(0, groupsToAwait(copyGroups, pending)).flat(),
    forget: (warp, { pending }) => {
      warp.copyGroups = warp.copyGroups.slice(groupsToAwait(warp.copyGroups, pending));
    },
  }),
  'cp.async.wait_all': waitForOperations({
    name: 'cp.async',
    operations: copiesOf,
    forget: (warp) => {
      warp.copyGroups = [];
      warp.openCopyGroup = [];
    },
  }),
  'cp.async.mbarrier.arrive': arrival(false),
  'cp.async.mbarrier.arrive.noinc': arrival(true),
};
