import {
  clusterAddress,
  findMmaLayout,
  type CtaGroup,
  memoryBits,
  type MmaFootprint,
  siteOf,
  type Tcgen05Mma,
  usedBytes,
} from '../isa/index.js';
import { count } from '../measure/index.js';
import { columnOf } from '../memory/index.js';
import {
  report,
  reportViolation,
  type CtaState,
  type MachineState,
  type TensorHistoryEntry,
  type WarpState,
} from '../state.js';
import { issue, visitChunks, visitRectangle } from './issue.js';
import { arrive } from './mbarrier.js';
import {
  alwaysReady,
  noRegisters,
  nothing,
  type AsynchronousRecord,
  type InstructionRecords,
} from './record.js';

/** The CTAs that an instruction of a group works on; reports a pair where there is none. */
export function ctasOfGroup(
  machine: MachineState,
  warp: WarpState,
  group: CtaGroup,
): readonly CtaState[] | null {
  const ctas = group === 1 ? [warp.cta] : machine.ctas;
  if (ctas.length === group) return ctas;
  report(machine, warp, 'instruction-shape', `cta_group::2 in a cluster of one CTA`);
  return null;
}

const accumulatorBytes = 4;

function accumulatorName(mma: Tcgen05Mma): string {
  const { d, shape, a, b, isWeightStationary = false } = mma;
  const bits = [memoryBits(mma, a), memoryBits(mma, b)];
  return [d, shape.m, shape.n, ...bits, isWeightStationary].join();
}

/** The columns from which an MMA reads A, when they are tensor memory. */
function readColumns(mma: Tcgen05Mma): readonly [number, number] | null {
  const { aOperand, shape, a } = mma;
  if (aOperand.space !== 'tensor') return null;
  const column = columnOf(aOperand.address);
  return [column, column + (shape.k * memoryBits(mma, a)) / 32];
}

/** The columns that an MMA writes: a part of N where the parts of D's columns lie in lanes of their own. */
function writtenColumns(mma: Tcgen05Mma): readonly [number, number] {
  const column = columnOf(mma.d);
  return [column, column + mma.shape.n / (findMmaLayout(mma)?.columnParts ?? 1)];
}

/** Earlier MMAs and copies of the warp that the hardware executes before this MMA. */
function predecessors(
  { model }: MachineState,
  { tensorHistory }: WarpState,
  mma: Tcgen05Mma,
): readonly TensorHistoryEntry[] {
  const accumulator = accumulatorName(mma);
  const [first, end] = writtenColumns(mma);
  return [...tensorHistory.values()].filter((entry) => {
    if (entry.accumulator === null || entry.accumulator === accumulator) return true;
    if (model.mmaOrder === 'accumulator') return false;
    if (model.mmaOrder === 'issue') return true;
    return entry.reads !== null && entry.reads[0] < end && first < entry.reads[1];
  });
}

/** The memory that an MMA touches in each CTA; null for an MMA that the tensor core does not have. */
function footprintOf({ mmaUnits }: MachineState, mma: Tcgen05Mma): MmaFootprint | null {
  const unit = mmaUnits.find(mma);
  return typeof unit === 'string' ? null : unit.footprint(mma);
}

/** The operand bits that give an MMA's rate of the tensor core; there is no rate of its own for two elements a byte. */
function rateBits(mma: Tcgen05Mma): 32 | 16 | 8 | 4 {
  const bits = memoryBits(mma, mma.a);
  return bits === 32 || bits === 16 || bits === 4 ? bits : 8;
}

function countMma(cta: CtaState, mma: Tcgen05Mma): void {
  const { shape, group, names, aOperand, accumulate } = mma;
  const { m, n, k } = shape;
  const { mmaFlops, mmaFlopsByOperandBits, sharedBytes, tensorBytes } = cta.counters;
  const rows = m / group;
  const flops = 2 * rows * n * k;
  count(mmaFlops, names.d, flops);
  count(mmaFlopsByOperandBits, String(rateBits(mma)), flops);
  const aBytes = (rows * k * memoryBits(mma, mma.a)) / 8;
  count(aOperand.space === 'shared' ? sharedBytes : tensorBytes, `${names.a} → mma`, aBytes);
  count(sharedBytes, `${names.b} → mma`, ((n / group) * k * memoryBits(mma, mma.b)) / 8);
  const dBytes = rows * n * accumulatorBytes;
  if (accumulate) count(tensorBytes, `${names.d} → mma`, dBytes);
  count(tensorBytes, `mma → ${names.d}`, dBytes);
}

/** Reports operands in columns that are not allocated; returns whether all are allocated. */
function areAllocated(
  machine: MachineState,
  warp: WarpState,
  cta: CtaState,
  mma: Tcgen05Mma,
): boolean {
  const scales = (footprintOf(machine, mma)?.scales ?? []).map(
    ({ firstColumn, columns }) => [firstColumn, firstColumn + columns] as const,
  );
  for (const area of [writtenColumns(mma), readColumns(mma), ...scales]) {
    if (area === null) continue;
    const [first, end] = area;
    if (cta.tensor.isAllocated(first, end - first)) continue;
    report(
      machine,
      warp,
      'tensor-allocation',
      `columns ${first} to ${end - 1} of CTA ${cta.rank} are not allocated`,
    );
    return false;
  }
  return true;
}

const mma: AsynchronousRecord<'tcgen05.mma'> = {
  ready: alwaysReady,
  isWait: false,
  reads: {
    registers: noRegisters,
    memory: (machine, cta, instruction, visit) => {
      const footprint = footprintOf(machine, instruction);
      if (footprint === null) return;
      const { a, b, d, scales } = footprint;
      if (a.space === 'shared')
        visitChunks(cta, a.chunks, visit, usedBytes(instruction, instruction.a));
      else for (const area of a.rectangles) visitRectangle(cta, area, visit);
      visitChunks(cta, b, visit, usedBytes(instruction, instruction.b));
      for (const area of scales) visitRectangle(cta, area, visit);
      if (instruction.accumulate) for (const area of d) visitRectangle(cta, area, visit);
    },
  },
  writes: {
    registers: noRegisters,
    memory: (machine, cta, instruction, visit) => {
      for (const area of footprintOf(machine, instruction)?.d ?? [])
        visitRectangle(cta, area, visit);
    },
  },
  unit: {
    name: 'tensor core',
    operation: 'mma',
    cycles: (instruction, { mmaFlops }) => {
      const { m, n, k } = instruction.shape;
      const bits = rateBits(instruction);
      // It is assumed that two elements a byte are as fast as one, by the bytes; it shapes the picture
      // alone.
      const rate = bits === 4 ? 2 * mmaFlops[8] : mmaFlops[bits];
      return (2 * m * n * k) / instruction.group / rate;
    },
    latency: () => 0,
  },
  meaning: 'is',
  describe: ({ shape, a, b, aOperand, d, accumulate, group, names }) => ({
    product: `${names.d} = ${names.a} · ${names.b}`,
    accumulate,
    group,
    shape: `${shape.m} × ${shape.n} × ${shape.k}`,
    operands: a === b ? a : `${a}, ${b}`,
    a: aOperand.space === 'shared' ? 'shared memory' : 'tensor memory',
    column: columnOf(d),
  }),
  execute: (machine, warp, instruction) => {
    const ctas = ctasOfGroup(machine, warp, instruction.group);
    if (ctas === null) return 'refused';
    const unit = machine.mmaUnits.find(instruction);
    if (typeof unit === 'string') {
      report(machine, warp, 'instruction-shape', unit);
      return 'refused';
    }
    if (reportViolation(machine, warp, unit.check(instruction, ctas))) return 'refused';
    if (!ctas.every((cta) => areAllocated(machine, warp, cta, instruction))) return 'refused';
    for (const cta of ctas) countMma(cta, instruction);
    const before = predecessors(machine, warp, instruction);
    const operation = issue(machine, warp, mma, instruction, {
      ctas,
      after: before.map((entry) => entry.operation).filter(({ isDone }) => !isDone),
      predecessors: before.map((entry) => entry.operation.order),
      perform: () => {
        const { tracer } = machine;
        const trace = tracer && { product: tracer.product, site: siteOf(instruction) };
        const violation = unit.execute(instruction, ctas, trace);
        // The warp is elsewhere by now.
        if (violation !== null)
          report(machine, warp, violation.kind, `${siteOf(instruction)}: ${violation.message}`);
      },
    });
    const accumulator = accumulatorName(instruction);
    const reads = readColumns(instruction);
    warp.tensorHistory.set(`${accumulator}/${reads?.[0] ?? ''}`, { operation, accumulator, reads });
    warp.tensorOperations.push(operation);
    return;
  },
};

const commit: AsynchronousRecord<'tcgen05.commit'> = {
  ready: alwaysReady,
  isWait: false,
  reads: nothing,
  writes: nothing,
  // It needs no unit and no time of its own.
  unit: { name: 'issue', operation: 'commit', cycles: () => 0, latency: () => 0 },
  meaning: 'none',
  describe: ({ barrier, ctas }) => ({ barrier, ctas: ctas.join(', ') }),
  execute: (machine, warp, instruction) => {
    const { barrier, ctas } = instruction;
    const after = warp.tensorOperations.filter(({ isDone }) => !isDone);
    const earlier = warp.lastCommits.map(({ order }) => order);
    // One arrival a CTA, each when the scheduler chooses: none of them implies that another has
    // come.
    warp.lastCommits = ctas.map((rank) =>
      issue(machine, warp, commit, instruction, {
        after,
        predecessors: earlier,
        reaches: machine.ctas[rank] === undefined ? [] : [machine.ctas[rank]],
        perform: (actor) => arrive(machine, actor, clusterAddress(rank, barrier), 1),
      }),
    );
    warp.tensorOperations = [...after, ...warp.lastCommits];
  },
};

/**
 * MMAs and the commits that track them. An MMA reads its operands and writes D at one moment of the
 * scheduler's choice after its issue, later than the MMAs that the memory model orders before it and
 * than no others; a commit arrives when all MMAs and copies that the warp issued before it are done, and
 * after its earlier commits, on which kernels rely when they wait only for the last one at their end.
 * Source: PTX ISA, `tcgen05.mma`, `tcgen05.commit`.
 */
export const tcgen05MmaRecords: InstructionRecords<'tcgen05.mma' | 'tcgen05.commit'> = {
  'tcgen05.mma': mma,
  'tcgen05.commit': commit,
};
