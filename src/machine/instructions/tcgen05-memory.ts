import { warpLanes, type InstructionOf } from '../isa/index.js';
import { count } from '../measure/index.js';
import {
  checkFragment,
  checkTensorCopy,
  columnOf,
  copyToTensorMemory,
  descriptorChunks,
  fragmentRegisters,
  loadFragment,
  storeFragment,
  tensorCopyExtent,
  touchedByFragment,
  touchedByTensorCopy,
} from '../memory/index.js';
import { arriveAtNamed } from '../ordering/index.js';
import {
  report,
  reportViolation,
  type AsynchronousOperation,
  type Continuation,
  type CtaState,
  type MachineState,
  type WarpState,
} from '../state.js';
import { issue, touchMemory, visitChunks, visitRectangle } from './issue.js';
import {
  alwaysReady,
  issueSlot,
  movesNothing,
  noDetails,
  noMemory,
  noRegisters,
  nothing,
  type AsynchronousRecord,
  type InstructionRecord,
  type InstructionRecords,
  type Touched,
} from './record.js';
import { ctasOfGroup } from './tcgen05-mma.js';

const wordBytes = 4;

type Transfer = InstructionOf<'tcgen05.ld' | 'tcgen05.st'>;

/** Reports a transfer to lanes or columns that the warp may not reach; whether it may. */
function isAllowed(
  machine: MachineState,
  warp: WarpState,
  { transfer, address, fragment }: Transfer,
): boolean {
  if (reportViolation(machine, warp, checkFragment(transfer, address, warp.index))) return false;
  const registers = warpLanes * fragmentRegisters(transfer);
  if (fragment.length !== registers) {
    report(machine, warp, 'instruction-shape', `${fragment.length} registers, not ${registers}`);
    return false;
  }
  for (const { firstColumn, columns } of touchedByFragment(transfer, address))
    if (!warp.cta.tensor.isAllocated(firstColumn, columns)) {
      const end = firstColumn + columns - 1;
      report(
        machine,
        warp,
        'tensor-allocation',
        `columns ${firstColumn} to ${end} are not allocated`,
      );
      return false;
    }
  return true;
}

/** The record of a load of registers, or of a store. */
function transferRecord(isLoad: boolean): AsynchronousRecord<Transfer['op']> {
  const fragment: Touched<Transfer['op']> = {
    registers: (one) => [one.fragment],
    memory: noMemory,
  };
  const columns: Touched<Transfer['op']> = {
    registers: noRegisters,
    memory: (_machine, cta, { transfer, address }, visit) => {
      for (const area of touchedByFragment(transfer, address)) visitRectangle(cta, area, visit);
    },
  };
  const record: AsynchronousRecord<Transfer['op']> = {
    ready: alwaysReady,
    isWait: false,
    reads: isLoad ? columns : fragment,
    writes: isLoad ? fragment : columns,
    unit: {
      name: 'tensor memory',
      operation: isLoad ? 'tensor-load' : 'tensor-store',
      cycles: ({ fragment }, { tensorBytes }) => (fragment.length * wordBytes) / tensorBytes,
      latency: () => 0,
    },
    describe: ({ name, address, transfer: { repeat } }) => ({
      name,
      column: columnOf(address),
      repeat,
    }),
    execute: (machine, warp, instruction) => {
      if (!isAllowed(machine, warp, instruction)) return 'refused';
      const { transfer, address, fragment, name } = instruction;
      const { tensor, counters } = warp.cta;
      const direction = isLoad ? `${name} → registers` : `registers → ${name}`;
      count(counters.tensorBytes, direction, fragment.length * wordBytes);
      // The source registers may change after the instruction has been issued.
      const source = isLoad ? fragment : fragment.slice();
      const operation = issue(machine, warp, record, instruction, {
        perform: () => {
          if (isLoad) loadFragment(tensor.words, transfer, address, fragment);
          else storeFragment(tensor.words, transfer, address, source);
        },
      });
      (isLoad ? warp.loads : warp.stores).push(operation);
      return;
    },
  };
  return record;
}

/** The record of tcgen05.wait for loads or stores. */
function wait<Op extends 'tcgen05.wait::ld' | 'tcgen05.wait::st'>(
  operationsOf: (warp: WarpState) => AsynchronousOperation[],
  what: string,
): InstructionRecord<Op> {
  return {
    ...movesNothing,
    ready: {
      isReady: (_machine, warp) => operationsOf(warp).every(({ isDone }) => isDone),
      waitsFor: (_machine, warp) =>
        `${operationsOf(warp).filter(({ isDone }) => !isDone).length} ${what}`,
      readyTime: (_machine, warp) => Math.max(0, ...operationsOf(warp).map(({ doneAt }) => doneAt)),
    },
    isWait: true,
    describe: noDetails,
    execute: ({ tracker }, warp) => {
      const operations = operationsOf(warp);
      for (const { kind, order } of operations)
        if (order !== null) tracker?.finish(warp, kind, order);
      operations.length = 0;
    },
  };
}

function columnsInUse({ tensor }: CtaState): number {
  return tensor.blocks().reduce((sum, { columns }) => sum + columns, 0);
}

/** A warp of a pair has allocated; the generation that its arrival is counted to. */
function arriveAtPair(machine: MachineState, warp: WarpState): number {
  const { pairAllocation } = machine;
  const { generation, threads } = pairAllocation;
  machine.tracker?.arriveAtNamed(machine, warp, pairAllocation, { waits: true, isRelaxed: false });
  if (arriveAtNamed(pairAllocation, warpLanes, threads, warp.name) === 'completed')
    machine.tracker?.completeNamed(pairAllocation);
  return generation;
}

const copy: AsynchronousRecord<'tcgen05.cp'> = {
  ready: alwaysReady,
  isWait: false,
  reads: {
    registers: noRegisters,
    memory: (_machine, cta, { shape, source }, visit) =>
      visitChunks(cta, descriptorChunks(source, tensorCopyExtent(shape)), visit),
  },
  writes: {
    registers: noRegisters,
    memory: (_machine, cta, { shape, address }, visit) => {
      for (const area of touchedByTensorCopy(shape, address)) visitRectangle(cta, area, visit);
    },
  },
  unit: {
    name: 'tensor core',
    operation: 'copy',
    cycles: ({ shape }, { sharedBytes }) => copiedBytes(shape) / sharedBytes,
    latency: () => 0,
  },
  describe: noDetails,
  execute: (machine, warp, instruction) => {
    const { group, shape, address, source, name } = instruction;
    const ctas = ctasOfGroup(machine, warp, group);
    if (ctas === null) return 'refused';
    for (const { shared } of ctas)
      if (reportViolation(machine, warp, checkTensorCopy(shape, shared, source, address)))
        return 'refused';
    const bytes = copiedBytes(shape);
    for (const { counters } of ctas) {
      count(counters.sharedBytes, `${name} → tensor memory`, bytes);
      count(counters.tensorBytes, `shared memory → ${name}`, bytes);
    }
    const operation = issue(machine, warp, copy, instruction, {
      ctas,
      perform: () => {
        for (const { shared, tensor } of ctas)
          copyToTensorMemory(shape, shared, source, tensor.words, address);
      },
    });
    warp.tensorHistory.set(`cp ${address}`, { operation, accumulator: null, reads: null });
    warp.tensorOperations.push(operation);
    return;
  },
};

function copiedBytes(shape: InstructionOf<'tcgen05.cp'>['shape']): number {
  const { rows, k } = tensorCopyExtent(shape);
  return rows * k;
}

const alloc: InstructionRecord<'tcgen05.alloc'> = {
  ready: alwaysReady,
  isWait: false,
  reads: nothing,
  // The word that gets the address; the columns themselves get a life, not contents.
  writes: {
    registers: noRegisters,
    memory: (_machine, cta, { destination }, visit) =>
      visit({ space: 'shared', cta, start: destination / wordBytes, count: 1 }),
  },
  unit: issueSlot,
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
  cta.shared.words[destination / wordBytes] = address;
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
 * Tensor memory: allocation, loads and stores of registers, copies from shared memory. A load or store is
 * performed at one moment of the scheduler's choice after its issue. A pair of CTAs allocates
 * collectively: its two tcgen05.alloc wait for one another. That tcgen05.dealloc does so too is not made
 * use of, since the first of the two may block and need not. Source: PTX ISA, `tcgen05.alloc`,
 * `tcgen05.ld`, `tcgen05.st`, `tcgen05.wait`, `tcgen05.cp`, "Issue Granularity".
 */
export const tcgen05MemoryRecords: InstructionRecords<
  | 'tcgen05.alloc'
  | 'tcgen05.dealloc'
  | 'tcgen05.relinquish_alloc_permit'
  | 'tcgen05.ld'
  | 'tcgen05.st'
  | 'tcgen05.wait::ld'
  | 'tcgen05.wait::st'
  | 'tcgen05.cp'
> = {
  'tcgen05.alloc': alloc,
  'tcgen05.dealloc': {
    // It ends what its columns hold, which the tracker follows apart from reads and writes.
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
  'tcgen05.ld': transferRecord(true),
  'tcgen05.st': transferRecord(false),
  'tcgen05.wait::ld': wait(({ loads }) => loads, 'tcgen05.ld'),
  'tcgen05.wait::st': wait(({ stores }) => stores, 'tcgen05.st'),
  'tcgen05.cp': copy,
};
