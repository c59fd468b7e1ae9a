import { count } from '../counters.js';
import type { InstructionOf } from '../instruction.js';
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
import { arriveAtNamed } from '../named-barrier.js';
import { issue } from '../operations.js';
import {
  report,
  reportViolation,
  type AsynchronousOperation,
  type CtaState,
  type MachineState,
  type WarpState,
} from '../state.js';
import { accessChunks, accessTensor } from './access.js';
import { ctasOfGroup } from './ctas-of-group.js';
import type { InstructionDefinition, InstructionDefinitions } from './definition.js';

const lanesOfWarp = 32;
const wordBytes = 4;

type Transfer = InstructionOf<'tcgen05.ld' | 'tcgen05.st'>;

/** Reports a transfer to lanes or columns that the warp may not reach; whether it may. */
function isAllowed(
  machine: MachineState,
  warp: WarpState,
  { transfer, address, fragment }: Transfer,
): boolean {
  if (reportViolation(machine, warp, checkFragment(transfer, address, warp.index))) return false;
  const registers = lanesOfWarp * fragmentRegisters(transfer);
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

function move(machine: MachineState, warp: WarpState, instruction: Transfer): void {
  if (!isAllowed(machine, warp, instruction)) return;
  const { op, transfer, address, fragment, name } = instruction;
  const { cta } = warp;
  const isLoad = op === 'tcgen05.ld';
  const kind = isLoad ? 'tensor-load' : 'tensor-store';
  const bytes = fragment.length * wordBytes;
  count(cta.counters.tensorBytes, isLoad ? `${name} → registers` : `registers → ${name}`, bytes);
  // The source registers may change after the instruction has been issued.
  const source = isLoad ? fragment : fragment.slice();
  const operation = issue(machine, warp, {
    kind,
    unit: 'tensor memory',
    cycles: bytes / machine.rates.tensorBytes,
    fragment: isLoad ? fragment : null,
    perform: ({ order }) => {
      const { words } = cta.tensor;
      if (isLoad) loadFragment(words, transfer, address, fragment);
      else storeFragment(words, transfer, address, source);
      if (order === null) return;
      for (const area of touchedByFragment(transfer, address))
        accessTensor(machine, { warp, order, kind }, cta, isLoad ? 'read' : 'write', area);
    },
  });
  (isLoad ? warp.loads : warp.stores).push(operation);
}

/** The definition of tcgen05.wait for loads or stores. */
function wait<Op extends 'tcgen05.wait::ld' | 'tcgen05.wait::st'>(
  operationsOf: (warp: WarpState) => AsynchronousOperation[],
  what: string,
): InstructionDefinition<Op> {
  return {
    isReady: (_machine, warp) => operationsOf(warp).every(({ isDone }) => isDone),
    waitsFor: (_machine, warp) =>
      `${operationsOf(warp).filter(({ isDone }) => !isDone).length} ${what}`,
    readyTime: (_machine, warp) => Math.max(0, ...operationsOf(warp).map(({ doneAt }) => doneAt)),
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
  if (arriveAtNamed(pairAllocation, lanesOfWarp, threads, warp.name) === 'completed')
    machine.tracker?.completeNamed(pairAllocation);
  return generation;
}

function executeCopy(
  machine: MachineState,
  warp: WarpState,
  { group, shape, address, source, name }: InstructionOf<'tcgen05.cp'>,
): void {
  const ctas = ctasOfGroup(machine, warp, group);
  if (ctas === null) return;
  for (const { shared } of ctas)
    if (reportViolation(machine, warp, checkTensorCopy(shape, shared, source, address))) return;
  const { rows, k } = tensorCopyExtent(shape);
  const areas = touchedByTensorCopy(shape, address);
  for (const { counters } of ctas) {
    count(counters.sharedBytes, `${name} → tensor memory`, rows * k);
    count(counters.tensorBytes, `shared memory → ${name}`, rows * k);
  }
  const operation = issue(machine, warp, {
    kind: 'copy',
    unit: 'tensor core',
    cycles: (rows * k) / machine.rates.sharedBytes,
    reaches: ctas,
    perform: ({ order }) => {
      for (const cta of ctas) {
        copyToTensorMemory(shape, cta.shared, source, cta.tensor.words, address);
        if (order === null) continue;
        const actor = { warp, order, kind: 'copy' } as const;
        accessChunks(machine, actor, cta, descriptorChunks(source, tensorCopyExtent(shape)));
        for (const area of areas) accessTensor(machine, actor, cta, 'write', area);
      }
    },
  });
  warp.tensorHistory.set(`cp ${address}`, { operation, accumulator: null, reads: null });
  warp.tensorOperations.push(operation);
}

/**
 * Tensor memory: allocation, loads and stores of registers, copies from shared memory. A load or store is
 * performed at one moment of the scheduler's choice after its issue. A pair of CTAs allocates
 * collectively: its two tcgen05.alloc wait for one another. That tcgen05.dealloc does so too is not made
 * use of, since the first of the two may block and need not. Source: PTX ISA, `tcgen05.alloc`,
 * `tcgen05.ld`, `tcgen05.st`, `tcgen05.wait`, `tcgen05.cp`, "Issue Granularity".
 */
export const tcgen05MemoryDefinitions: InstructionDefinitions<
  | 'tcgen05.alloc'
  | 'tcgen05.dealloc'
  | 'tcgen05.relinquish_alloc_permit'
  | 'tcgen05.ld'
  | 'tcgen05.st'
  | 'tcgen05.wait::ld'
  | 'tcgen05.wait::st'
  | 'tcgen05.cp'
> = {
  'tcgen05.alloc': {
    execute: (machine, warp, { group, columns, destination }) => {
      const { cta } = warp;
      if (ctasOfGroup(machine, warp, group) === null) return;
      if (destination % wordBytes !== 0) {
        report(machine, warp, 'misaligned', `the address goes to ${destination}, no multiple of 4`);
        return;
      }
      if (!(destination >= 0 && destination + wordBytes <= cta.shared.limitBytes)) {
        report(machine, warp, 'shared-overflow', `the address goes to ${destination}`);
        return;
      }
      const allocate = (): boolean => {
        const result = cta.tensor.allocate(columns);
        if (!result.ok) {
          if (!result.isBlocked) reportViolation(machine, warp, result.violation);
          return !result.isBlocked;
        }
        cta.shared.words[destination / wordBytes] = result.address;
        machine.tracker?.access(
          machine,
          { warp, order: null },
          { space: 'shared', cta, kind: 'write', start: destination / wordBytes, count: 1 },
        );
        machine.tracker?.allocateTensor(machine, warp, columnOf(result.address), columns);
        const { counters } = cta;
        counters.mostTensorColumns = Math.max(counters.mostTensorColumns, columnsInUse(cta));
        return true;
      };
      let isAllocated = allocate();
      if (isAllocated && group === 1) return;
      // A pair allocates together: neither goes on before the other has its columns.
      let generation: number | null = null;
      const { pairAllocation } = machine;
      const meetPeer = (): boolean => {
        if (group === 1) return true;
        generation ??= arriveAtPair(machine, warp);
        return pairAllocation.generation > generation;
      };
      return {
        isReady: () => (isAllocated ||= allocate()) && meetPeer(),
        resume: () => {
          if (generation !== null) machine.tracker?.leaveNamed(warp, pairAllocation, generation);
        },
        waitsFor: () =>
          isAllocated
            ? 'tcgen05.alloc of the other CTA of the pair'
            : `${columns} free columns of tensor memory`,
        readyTime: () => machine.now,
      };
    },
  },
  'tcgen05.dealloc': {
    execute: (machine, warp, { address, columns }) => {
      const result = warp.cta.tensor.deallocate(address, columns);
      if (!result.ok) reportViolation(machine, warp, result.violation);
      else machine.tracker?.endTensor(machine, warp, columnOf(address), columns);
    },
  },
  'tcgen05.relinquish_alloc_permit': {
    execute: (_machine, { cta }) => cta.tensor.relinquishPermit(),
  },
  'tcgen05.ld': { execute: move },
  'tcgen05.st': { execute: move },
  'tcgen05.wait::ld': wait<'tcgen05.wait::ld'>(({ loads }) => loads, 'tcgen05.ld'),
  'tcgen05.wait::st': wait<'tcgen05.wait::st'>(({ stores }) => stores, 'tcgen05.st'),
  'tcgen05.cp': { execute: executeCopy },
};
