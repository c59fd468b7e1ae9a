import { siteOf, type InstructionOf, type Opcode } from '../isa/index.js';
import { tensorMemoryColumns, type TensorMemoryRectangle } from '../memory/index.js';
import type { Actor, OperationOrder } from '../ordering/index.js';
import type { AsynchronousOperation, CtaState, MachineState, WarpState } from '../state.js';
import {
  noMemory,
  type AsynchronousRecord,
  type InstructionRecord,
  type VisitArea,
} from './record.js';

/** Lanes that are followed together: no instruction touches fewer but tcgen05.cp.4x256b. */
const granuleLanes = 16;
const wordBytes = 4;
const chunkBytes = 16;

/** Tells the tracker which memory of a CTA an instruction reads and writes now. */
export function touchMemory<Op extends Opcode>(
  machine: MachineState,
  actor: Actor,
  { reads, writes }: InstructionRecord<Op>,
  instruction: InstructionOf<Op>,
  cta: CtaState,
): void {
  const { tracker } = machine;
  if (tracker === null) return;
  if (reads.memory !== noMemory)
    reads.memory(machine, cta, instruction, (area) => tracker.access(machine, actor, 'read', area));
  if (writes.memory !== noMemory)
    writes.memory(machine, cta, instruction, (area) =>
      tracker.access(machine, actor, 'write', area),
    );
}

/** Description of an operation that an instruction issues. */
interface OperationRequest {
  /** Operations that the hardware performs before it; default none. */
  readonly after?: readonly AsynchronousOperation[];
  /** Operations that it is ordered after in the sense of the memory model; default `after`. */
  readonly predecessors?: readonly (OperationOrder | null)[];
  /** The CTAs whose memory it reads and writes; default that of its warp. */
  readonly ctas?: readonly CtaState[];
  /** The CTAs whose memory or barriers it reaches, and which must not end before; default `ctas`. */
  readonly reaches?: readonly CtaState[];
  /** Carries it out as the given actor, when the scheduler chooses. */
  readonly perform: (actor: Actor) => void;
  /** Whether it is part of an operation of several warps, which is under way only when all of them have issued it. */
  readonly isPart?: boolean;
}

/** Issues an operation for an instruction of a warp; it is performed some time from now on. */
export function issue<Op extends Opcode>(
  machine: MachineState,
  warp: WarpState,
  record: AsynchronousRecord<Op>,
  instruction: InstructionOf<Op>,
  request: OperationRequest,
): AsynchronousOperation {
  const { after = [], ctas = [warp.cta], perform, isPart = false } = request;
  const { predecessors = after.map(({ order }) => order), reaches = ctas } = request;
  const { unit, writes } = record;
  const order = machine.tracker?.begin(warp, unit.operation, predecessors, reaches) ?? null;
  // Written out: this is made for every tcgen05 instruction, and spreading costs more than the rest.
  const site = siteOf(instruction);
  const operation: AsynchronousOperation = {
    kind: unit.operation,
    warp,
    reaches,
    unit: unit.name,
    cycles: unit.cycles(instruction, machine.rates),
    after,
    fragments:
      unit.operation === 'wgmma'
        ? [...record.reads.registers(instruction), ...writes.registers(instruction)]
        : writes.registers(instruction),
    latency: unit.latency(machine.rates),
    name: instruction.op,
    site,
    instruction,
    perform: () => {
      const actor = { warp, order, site };
      if (order !== null)
        for (const cta of ctas) touchMemory(machine, actor, record, instruction, cta);
      perform(actor);
    },
    partners: [],
    order,
    issuedAt: machine.now,
    isDone: false,
    doneAt: 0,
    chosenAs: 'operation',
    time: 0,
  };
  if (machine.occupancy !== null) operation.time = machine.occupancy.reserve(operation);
  if (!isPart) machine.pending.push(operation);
  return operation;
}

/** Visits words of tensor memory, as the granules that the tracker follows. */
export function visitRectangle(
  cta: CtaState,
  { firstLane, lanes, firstColumn, columns }: TensorMemoryRectangle,
  visit: VisitArea,
): void {
  const firstRow = Math.floor(firstLane / granuleLanes);
  const endRow = Math.ceil((firstLane + lanes) / granuleLanes);
  visit({
    space: 'tensor',
    cta,
    unit: 'word',
    start: firstRow * tensorMemoryColumns + firstColumn,
    count: columns,
    stride: tensorMemoryColumns,
    rows: endRow - firstRow,
    strong: undefined,
    repeats: undefined,
  });
}

/**
 * Visits 16-byte chunks of shared memory; those that adjoin are one area.
 *
 * @param used bytes of each chunk, from its first on, where the others are padding
 */
export function visitChunks(
  cta: CtaState,
  chunks: Int32Array,
  visit: VisitArea,
  used: number = chunkBytes,
): void {
  for (let i = 0; i < chunks.length;) {
    const first = i;
    // A row's chunks adjoin upwards, or downwards where the swizzle turns them round.
    const step = chunks[i + 1] === chunks[i] - chunkBytes ? -chunkBytes : chunkBytes;
    do i++;
    while (used === chunkBytes && i < chunks.length && chunks[i] === chunks[i - 1] + step);
    const start = Math.min(chunks[first], chunks[i - 1]) / wordBytes;
    visit({
      space: 'shared',
      cta,
      unit: 'word',
      start,
      count: ((i - first) * used) / wordBytes,
      // Written out, as wherever there are many areas: the tracker reads areas of one shape several times faster.
      stride: 0,
      rows: 1,
      strong: undefined,
      repeats: undefined,
    });
  }
}
