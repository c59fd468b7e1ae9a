import { warpLanes, type InstructionOf } from '../isa/index.js';
import { columnOf } from '../memory/index.js';
import { arriveAtNamed } from '../ordering/index.js';
import {
  report,
  reportViolation,
  type Continuation,
  type CtaState,
  type MachineState,
  type WarpState,
} from '../state.js';
import { touchMemory } from './issue.js';
import {
  alwaysReady,
  issueSlot,
  movesNothing,
  noDetails,
  noRegisters,
  nothing,
  type InstructionRecord,
  type InstructionRecords,
} from './record.js';
import { ctasOfGroup } from './tcgen05-mma.js';

const wordBytes = 4;

function columnsInUse({ tensor }: CtaState): number {
  return tensor.blocks().reduce((sum, { columns }) => sum + columns, 0);
}

/** Counts the allocation of a warp of a pair; returns the generation of its arrival. */
function arriveAtPair(machine: MachineState, warp: WarpState): number {
  const { pairAllocation } = machine;
  const { generation, threads } = pairAllocation;
  machine.tracker?.arriveAtNamed(machine, warp, pairAllocation, { waits: true, isRelaxed: false });
  if (arriveAtNamed(pairAllocation, warpLanes, threads, warp.name) === 'completed')
    machine.tracker?.completeNamed(pairAllocation);
  return generation;
}

const alloc: InstructionRecord<'tcgen05.alloc'> = {
  ready: alwaysReady,
  isWait: false,
  reads: nothing,
  // The word that receives the address; the columns themselves begin a life, without contents.
  writes: {
    registers: noRegisters,
    memory: (_machine, cta, { destination }, visit) =>
      visit({ space: 'shared', cta, start: destination / wordBytes, count: 1 }),
  },
  unit: issueSlot,
  // The machine chooses the address.
  meaning: 'decides',
  describe: noDetails,
  execute: (machine, warp, instruction) => {
    const { group, columns, destination } = instruction;
    const { cta } = warp;
    if (ctasOfGroup(machine, warp, group) === null) return 'refused';
    if (destination % wordBytes !== 0) {
      report(machine, warp, 'misaligned', `the address goes to ${destination}, no multiple of 4`);
      return 'refused';
    }
    if (!(destination >= 0 && destination + wordBytes <= cta.shared.limitBytes)) {
      report(machine, warp, 'shared-overflow', `the address goes to ${destination}`);
      return 'refused';
    }
    const result = cta.tensor.allocate(columns);
    if (result.ok) return takeColumns(machine, warp, instruction, result.address);
    if (!result.isBlocked) {
      reportViolation(machine, warp, result.violation);
      return 'refused';
    }
    return {
      isReady: () => cta.tensor.hasRoom(columns),
      resume: () => {
        const later = cta.tensor.allocate(columns);
        if (later.ok) return takeColumns(machine, warp, instruction, later.address);
        reportViolation(machine, warp, later.violation);
        return;
      },
      waitsFor: () => `${columns} free columns of tensor memory`,
      readyTime: () => machine.now,
    };
  },
};

/**
 * The warp has its columns: it writes their address. A pair allocates together, so that its warp then waits until the other
 * has its columns, too.
 */
function takeColumns(
  machine: MachineState,
  warp: WarpState,
  instruction: InstructionOf<'tcgen05.alloc'>,
  address: number,
): Continuation {
  const { group, columns, destination } = instruction;
  const { cta } = warp;
  cta.shared.store.words[destination / wordBytes] = address;
  touchMemory(machine, { warp, order: null }, alloc, instruction, cta);
  machine.tracker?.allocateTensor(machine, warp, columnOf(address), columns);
  cta.counters.mostTensorColumns = Math.max(cta.counters.mostTensorColumns, columnsInUse(cta));
  const { pairAllocation } = machine;
  if (group === 1)
    return { isReady: () => true, resume: () => undefined, waitsFor: () => '', readyTime: () => 0 };
  const generation = arriveAtPair(machine, warp);
  return {
    isReady: () => pairAllocation.generation > generation,
    resume: () => machine.tracker?.leaveNamed(warp, pairAllocation, generation),
    waitsFor: () => 'tcgen05.alloc of the other CTA of the pair',
    readyTime: () => machine.now,
  };
}

/**
 * Allocation of columns of tensor memory. A pair of CTAs allocates collectively: its two tcgen05.alloc wait for
 * one another. tcgen05.dealloc is collective too, but this is not modelled, since the first of the two may block
 * and need not. Source: PTX ISA, `tcgen05.alloc`, "Issue Granularity".
 */
export const tcgen05AllocationRecords: InstructionRecords<
  'tcgen05.alloc' | 'tcgen05.dealloc' | 'tcgen05.relinquish_alloc_permit'
> = {
  'tcgen05.alloc': alloc,
  'tcgen05.dealloc': {
    // It ends the contents of its columns, which the tracker follows apart from reads and writes.
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp, { address, columns }) => {
      const result = warp.cta.tensor.deallocate(address, columns);
      if (!result.ok) reportViolation(machine, warp, result.violation);
      else machine.tracker?.endTensor(machine, warp, columnOf(address), columns);
    },
  },
  'tcgen05.relinquish_alloc_permit': {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: noDetails,
    execute: (machine, warp) => {
      warp.cta.tensor.relinquishPermit();
      machine.tracker?.relinquishTensor(machine, warp);
    },
  },
};
