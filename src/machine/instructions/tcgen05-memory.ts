import { siteOf, warpLanes, type InstructionOf, type Meaning } from '../isa/index.js';
import { count } from '../measure/index.js';
import {
  checkFragment,
  checkTensorCopy,
  columnOf,
  copyOfBytes,
  copyToTensorMemory,
  descriptorChunks,
  fragmentRegisters,
  loadFragment,
  reduceFragment,
  storeFragment,
  tensorCopyExtent,
  touchedByFragment,
  touchedByTensorCopy,
  type ReductionKind,
} from '../memory/index.js';
import { report, reportViolation, type MachineState, type WarpState } from '../state.js';
import { issue, visitChunks, visitRectangle } from './issue.js';
import {
  alwaysReady,
  noDetails,
  noMemory,
  noRegisters,
  type AsynchronousRecord,
  type InstructionRecords,
  type Touched,
} from './record.js';
import { ctasOfGroup } from './tcgen05-mma.js';
import { waitForOperations } from './wait-for-operations.js';

type Transfer = InstructionOf<'tcgen05.ld' | 'tcgen05.st'>;

/** Reports a transfer to lanes or columns that the warp may not reach; returns whether it is allowed. */
function isAllowed(
  machine: MachineState,
  warp: WarpState,
  { transfer, address, fragment }: Transfer,
): boolean {
  if (reportViolation(machine, warp, checkFragment(transfer, address, warp.index))) return false;
  const registers = warpLanes * fragmentRegisters(transfer);
  if (fragment.words.length !== registers) {
    report(
      machine,
      warp,
      'instruction-shape',
      `${fragment.words.length} registers, not ${registers}`,
    );
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

/** What the result of a reduction stands for; the loaded registers are moved in any case. */
function meaningOfReduction({ isAbsolute }: ReductionKind): Meaning {
  return isAbsolute ? 'is' : 'chooses';
}

/** The record of a load of registers, or of a store. */
function transferRecord(isLoad: boolean): AsynchronousRecord<Transfer['op']> {
  const fragment: Touched<Transfer['op']> = {
    registers: ({ fragment, reduction }) =>
      reduction === undefined ? [fragment] : [fragment, reduction.into],
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
      cycles: ({ fragment }, { tensorBytes }) => fragment.bytes.length / tensorBytes,
      latency: () => 0,
    },
    meaning: ({ reduction }) => (reduction === undefined ? 'moves' : meaningOfReduction(reduction)),
    describe: ({ name, address, transfer: { repeat } }) => ({
      name,
      column: columnOf(address),
      repeat,
    }),
    execute: (machine, warp, instruction) => {
      if (!isAllowed(machine, warp, instruction)) return 'refused';
      const { transfer, address, fragment, name, reduction } = instruction;
      const { tensor, counters } = warp.cta;
      const direction = isLoad ? `${name} → registers` : `registers → ${name}`;
      count(counters.tensorBytes, direction, fragment.bytes.length);
      // The source registers may change after the instruction has been issued.
      const source = isLoad ? fragment : copyOfBytes(fragment);
      const operation = issue(machine, warp, record, instruction, {
        perform: () => {
          if (isLoad) loadFragment(tensor.store, transfer, address, fragment);
          else storeFragment(tensor.store, transfer, address, source);
          if (reduction === undefined) return;
          reduceFragment(fragment, reduction);
          const { into } = reduction;
          machine.tracer?.lose(
            { store: fragment, byte: 0, bytes: fragment.bytes.length },
            { store: into, byte: 0, bytes: into.bytes.length },
            siteOf(instruction),
          );
        },
      });
      (isLoad ? warp.loads : warp.stores).push(operation);
      return;
    },
  };
  return record;
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
  meaning: 'moves',
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
    const before = machine.model.copyOrder ? [...warp.tensorHistory.values()] : [];
    const operation = issue(machine, warp, copy, instruction, {
      ctas,
      after: before.map((entry) => entry.operation).filter(({ isDone }) => !isDone),
      predecessors: before.map((entry) => entry.operation.order),
      perform: () => {
        for (const { shared, tensor } of ctas)
          copyToTensorMemory(shape, shared, source, tensor.store, address);
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

/**
 * Tensor memory: loads and stores of registers, copies from shared memory. A load or store is performed at
 * one moment of the scheduler's choice after its issue. Source: PTX ISA, `tcgen05.ld`, `tcgen05.st`,
 * `tcgen05.wait`, `tcgen05.cp`.
 */
export const tcgen05MemoryRecords: InstructionRecords<
  'tcgen05.ld' | 'tcgen05.st' | 'tcgen05.wait::ld' | 'tcgen05.wait::st' | 'tcgen05.cp'
> = {
  'tcgen05.ld': transferRecord(true),
  'tcgen05.st': transferRecord(false),
  'tcgen05.wait::ld': waitForOperations({
    name: 'tcgen05.ld',
    operations: ({ loads }) => loads,
    forget: (warp) => {
      warp.loads = [];
    },
  }),
  'tcgen05.wait::st': waitForOperations({
    name: 'tcgen05.st',
    operations: ({ stores }) => stores,
    forget: (warp) => {
      warp.stores = [];
    },
  }),
  'tcgen05.cp': copy,
};
