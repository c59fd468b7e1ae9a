import { siteOf, splitClusterAddress, warpLanes } from '../../isa/index.js';
import { copyOfBytes, moveBytes } from '../../memory/index.js';
import type { StrongAccess } from '../../ordering/index.js';
import { report } from '../../state.js';
import { issue } from '../issue.js';
import { completeBytes } from '../mbarrier.js';
import {
  alwaysReady,
  noMemory,
  noRegisters,
  type AsynchronousRecord,
  type InstructionRecords,
  type Touched,
} from '../record.js';
import { meaningOfCopy, reduceElements } from './atomic-operations.js';
import { visitPlaces } from './lane-areas.js';
import { forEachPlace } from './lane-places.js';
import { createTrafficCounter, registersOf } from './loads-and-stores.js';

type Op = 'st.async' | 'red.async';

/** A reduction is relaxed, for the cluster. */
const ofReductions: StrongAccess = { order: 'relaxed', scope: 'cluster', isAtomic: true };

const updated: Touched<Op>['memory'] = (machine, cta, { destination: places }, visit) =>
  visitPlaces(machine, cta, { places, use: 'updates', strong: ofReductions }, visit);

const written: Touched<Op>['memory'] = (machine, cta, { destination: places }, visit) =>
  visitPlaces(machine, cta, { places, use: 'writes' }, visit);

/** The record of a store or a reduction, from the memory that they touch. */
function record(
  op: Op,
  memory: { readonly read: Touched<Op>['memory']; readonly written: Touched<Op>['memory'] },
): AsynchronousRecord<Op> {
  const one: AsynchronousRecord<Op> = {
    ready: alwaysReady,
    isWait: false,
    reads: { registers: ({ data }) => [data], memory: memory.read },
    writes: { registers: noRegisters, memory: memory.written },
    unit: {
      name: 'load/store',
      operation: 'remote-store',
      cycles: ({ destination }, { bulkBytes }) => (warpLanes * destination.bytes) / bulkBytes,
      latency: ({ bulkLatency }) => bulkLatency,
    },
    meaning: meaningOfCopy,
    describe: ({ destination: { bytes }, reduction }) =>
      reduction === null ? { bytes } : { bytes, ...reduction },
    execute: (machine, warp, instruction) => {
      const { destination, data, barrier, reduction } = instruction;
      const { rank } = splitClusterAddress(barrier);
      const target = machine.ctas[rank];
      if (machine.ctas.length === 1)
        report(machine, warp, 'instruction-shape', `${op} in a cluster of one CTA`);
      const { bytes } = destination;
      const stores: (() => void)[] = [];
      const { tracer } = machine;
      const trace = tracer && { tracer, site: siteOf(instruction) };
      const options = { isShared: true, trace };
      const traffic = createTrafficCounter(warp.cta, (name) => `${op} → ${name}`);
      const access = reduction === null ? 'writes' : 'updates';
      forEachPlace(machine, warp, destination, access, (place, lane) => {
        if (place.cta !== target) {
          const message = `lane ${lane} stores into CTA ${place.cta.rank} and counts its bytes on CTA ${rank}`;
          report(machine, warp, 'instruction-shape', message);
          return;
        }
        const at = { ...place };
        const operand = copyOfBytes(data, lane * registersOf(bytes) * 4, bytes);
        stores.push(() => {
          if (reduction === null) moveBytes(operand, 0, at.store, at.offset, bytes);
          else reduceElements(reduction, at, { store: operand, offset: 0 }, bytes, options);
        });
        traffic.add(place, bytes);
      });
      traffic.end();
      if (stores.length === 0) return 'refused';
      issue(machine, warp, one, instruction, {
        reaches: [target],
        perform: (actor) => {
          for (const store of stores) store();
          completeBytes(machine, actor, barrier, stores.length * bytes);
        },
      });
      return;
    },
  };
  return one;
}

/**
 * Stores and reductions of lanes into the shared memory of a CTA of the cluster. Those of all lanes are performed at one
 * moment that the scheduler chooses after their issue, in the generic proxy, and count their bytes on a barrier
 * there. Source: PTX ISA, `st.async`, `red.async`.
 */
export const remoteStoreRecords: InstructionRecords<Op> = {
  'st.async': record('st.async', { read: noMemory, written }),
  'red.async': record('red.async', { read: updated, written: updated }),
};
