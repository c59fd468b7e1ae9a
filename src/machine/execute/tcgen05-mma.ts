import { operandFormats } from '../../hardware/index.js';
import { count } from '../counters.js';
import { clusterAddress, type InstructionOf, type Tcgen05Mma } from '../instruction.js';
import { columnOf } from '../memory/index.js';
import { issue } from '../operations.js';
import type { OperationOrder } from '../order-tracker.js';
import {
  report,
  reportViolation,
  type AsynchronousOperation,
  type CtaState,
  type MachineState,
  type WarpState,
} from '../state.js';
import type { MmaFootprint } from '../tensor-core/index.js';
import { accessChunks, accessTensor } from './access.js';
import { ctasOfGroup } from './ctas-of-group.js';
import type { InstructionDefinitions } from './definition.js';
import { arrive } from './mbarrier.js';

const accumulatorBytes = 4;

/** What a warp remembers of an MMA or a copy, for the order of later ones. */
export interface TensorHistoryEntry {
  readonly operation: AsynchronousOperation;
  /** Address, shape and kind of the accumulator; null for tcgen05.cp. */
  readonly accumulator: string | null;
  /** Columns of tensor memory that it reads as A. */
  readonly reads: readonly [first: number, end: number] | null;
}

function bitsOf(format: Tcgen05Mma['a']): number {
  return operandFormats[format].storageBits;
}

function accumulatorName({ d, shape, a, b }: Tcgen05Mma): string {
  return [d, shape.m, shape.n, bitsOf(a), bitsOf(b)].join();
}

/** The columns from which an MMA reads A, when they are tensor memory. */
function readColumns({ aOperand, shape, a }: Tcgen05Mma): readonly [number, number] | null {
  if (aOperand.space !== 'tensor') return null;
  const column = columnOf(aOperand.address);
  return [column, column + (shape.k * bitsOf(a)) / 32];
}

/** Earlier MMAs and copies of the warp that the hardware executes before this MMA. */
function predecessors(
  { model }: MachineState,
  { tensorHistory }: WarpState,
  mma: Tcgen05Mma,
): readonly TensorHistoryEntry[] {
  const accumulator = accumulatorName(mma);
  const column = columnOf(mma.d);
  const end = column + mma.shape.n;
  return [...tensorHistory.values()].filter((entry) => {
    if (entry.accumulator === null || entry.accumulator === accumulator) return true;
    if (model.mmaOrder === 'accumulator') return false;
    if (model.mmaOrder === 'issue') return true;
    return entry.reads !== null && entry.reads[0] < end && column < entry.reads[1];
  });
}

/** Tells the tracker what an MMA touches in one CTA. */
function trackAccesses(
  machine: MachineState,
  warp: WarpState,
  order: OperationOrder,
  { a, b, d }: MmaFootprint,
  accumulates: boolean,
  cta: CtaState,
): void {
  const actor = { warp, order, kind: 'mma' } as const;
  if (a.space === 'shared') accessChunks(machine, actor, cta, a.chunks);
  else for (const area of a.rectangles) accessTensor(machine, actor, cta, 'read', area);
  accessChunks(machine, actor, cta, b);
  for (const area of d) {
    if (accumulates) accessTensor(machine, actor, cta, 'read', area);
    accessTensor(machine, actor, cta, 'write', area);
  }
}

/** Which of the tensor core's rates an MMA runs at. */
function rateBits({ a }: Tcgen05Mma): 16 | 8 {
  return bitsOf(a) > 8 ? 16 : 8;
}

function countMma(cta: CtaState, mma: Tcgen05Mma): void {
  const { shape, group, names, aOperand, accumulate } = mma;
  const { m, n, k } = shape;
  const { mmaFlops, mmaFlopsByOperandBits, sharedBytes, tensorBytes } = cta.counters;
  const rows = m / group;
  const flops = 2 * rows * n * k;
  count(mmaFlops, names.d, flops);
  count(mmaFlopsByOperandBits, String(rateBits(mma)), flops);
  const aBytes = (rows * k * bitsOf(mma.a)) / 8;
  count(aOperand.space === 'shared' ? sharedBytes : tensorBytes, `${names.a} → mma`, aBytes);
  count(sharedBytes, `${names.b} → mma`, ((n / group) * k * bitsOf(mma.b)) / 8);
  const dBytes = rows * n * accumulatorBytes;
  if (accumulate) count(tensorBytes, `${names.d} → mma`, dBytes);
  count(tensorBytes, `mma → ${names.d}`, dBytes);
}

/** Reports operands in columns that are not allocated; whether all are. */
function areAllocated(
  machine: MachineState,
  warp: WarpState,
  cta: CtaState,
  mma: Tcgen05Mma,
): boolean {
  const firstColumn = columnOf(mma.d);
  const reads = readColumns(mma);
  const areas = [{ firstColumn, columns: mma.shape.n }];
  if (reads !== null) areas.push({ firstColumn: reads[0], columns: reads[1] - reads[0] });
  for (const { firstColumn, columns } of areas)
    if (!cta.tensor.isAllocated(firstColumn, columns)) {
      const end = firstColumn + columns - 1;
      report(
        machine,
        warp,
        'tensor-allocation',
        `columns ${firstColumn} to ${end} of CTA ${cta.rank} are not allocated`,
      );
      return false;
    }
  return true;
}

function executeMma(machine: MachineState, warp: WarpState, mma: Tcgen05Mma): void {
  const { group, shape, accumulate } = mma;
  const ctas = ctasOfGroup(machine, warp, group);
  if (ctas === null) return;
  const unit = machine.mmaUnits.find(mma);
  if (typeof unit === 'string') {
    report(machine, warp, 'instruction-shape', unit);
    return;
  }
  if (reportViolation(machine, warp, unit.check(mma, ctas))) return;
  if (!ctas.every((cta) => areAllocated(machine, warp, cta, mma))) return;
  const footprint = machine.tracker === null ? null : unit.footprint(mma);
  for (const cta of ctas) countMma(cta, mma);
  const before = predecessors(machine, warp, mma);
  const rate = machine.rates.mmaFlops[rateBits(mma)];
  const operation = issue(machine, warp, {
    kind: 'mma',
    unit: 'tensor core',
    cycles: (2 * shape.m * shape.n * shape.k) / group / rate,
    after: before.map((entry) => entry.operation).filter(({ isDone }) => !isDone),
    predecessors: before.map((entry) => entry.operation.order),
    reaches: ctas,
    perform: ({ order }) => {
      unit.execute(mma, ctas);
      if (order !== null && footprint !== null)
        for (const cta of ctas) trackAccesses(machine, warp, order, footprint, accumulate, cta);
    },
  });
  const accumulator = accumulatorName(mma);
  const reads = readColumns(mma);
  warp.tensorHistory.set(`${accumulator}/${reads?.[0] ?? ''}`, { operation, accumulator, reads });
  warp.tensorOperations.push(operation);
}

function executeCommit(
  machine: MachineState,
  warp: WarpState,
  { barrier, ctas }: InstructionOf<'tcgen05.commit'>,
): void {
  const after = warp.tensorOperations.filter(({ isDone }) => !isDone);
  const commit = issue(machine, warp, {
    kind: 'commit',
    unit: 'issue',
    cycles: 0,
    after,
    predecessors: [warp.lastCommit?.order ?? null],
    reaches: ctas.flatMap((rank) => machine.ctas[rank] ?? []),
    perform: ({ order }) => {
      const actor = order === null ? { warp, order } : ({ warp, order, kind: 'commit' } as const);
      for (const rank of ctas) arrive(machine, actor, clusterAddress(rank, barrier), 1);
    },
  });
  warp.tensorOperations = [...after, commit];
  warp.lastCommit = commit;
}

/**
 * MMAs and what tracks them. An MMA reads its operands and writes D at one moment of the scheduler's
 * choice after its issue, later than the MMAs that the memory model puts before it and than no others; a
 * commit arrives when all MMAs and copies that the warp issued before it are done, and after its
 * earlier commits, which kernels rely on where they wait for the last one only at their end. Source:
 * PTX ISA, `tcgen05.mma`, `tcgen05.commit`.
 */
export const tcgen05MmaDefinitions: InstructionDefinitions<'tcgen05.mma' | 'tcgen05.commit'> = {
  'tcgen05.mma': { execute: executeMma },
  'tcgen05.commit': { execute: executeCommit },
};
