import type { Effect, Instruction, Opcode } from '../isa/index.js';
import { bulkCopyRecords } from './bulk-copy.js';
import { bulkGroupRecords } from './bulk-groups.js';
import { launchControlRecords } from './launch-control.js';
import { mbarrierRecords } from './mbarrier-records.js';
import { atomicRecords } from './memory/atomics.js';
import { plainBulkCopyRecords } from './memory/bulk-copies.js';
import { laneCopyRecords } from './memory/lane-copies.js';
import { transferRecords } from './memory/loads-and-stores.js';
import { matrixTransferRecords } from './memory/matrix-transfers.js';
import { remoteStoreRecords } from './memory/remote-stores.js';
import {
  alwaysReady,
  movesNothing,
  type InstructionDetails,
  type InstructionRecord,
  type InstructionRecords,
} from './record.js';
import { registerCountRecords } from './register-counts.js';
import { registerRecords } from './registers.js';
import { strandRecords } from './strands.js';
import { tcgen05AllocationRecords } from './tcgen05-allocation.js';
import { tcgen05MemoryRecords } from './tcgen05-memory.js';
import { tcgen05MmaRecords } from './tcgen05-mma.js';
import { threadRecords } from './threads.js';
import { wgmmaRecords } from './wgmma.js';

/**
 * Fences of the memory model: with strong accesses before and after them they order a warp's accesses with those of
 * others in the scope. Source: PTX ISA, `fence`, `membar`, "Release and Acquire Patterns".
 */
const fenceRecords: InstructionRecords<'fence'> = {
  fence: {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: ({ scope }) => ({ scope }),
    execute: ({ tracker }, warp, { scope }) => tracker?.fenceMemory(warp, scope),
  },
};

/**
 * Every instruction of the machine, by its name. Those on registers alone, which all are the machine's
 * `registers`, are rows of src/isa.
 */
export const instructionRecords: InstructionRecords<Opcode> = {
  ...mbarrierRecords,
  ...threadRecords,
  ...bulkCopyRecords,
  ...bulkGroupRecords,
  ...launchControlRecords,
  ...registerRecords,
  ...registerCountRecords,
  ...strandRecords,
  ...tcgen05MmaRecords,
  ...tcgen05AllocationRecords,
  ...tcgen05MemoryRecords,
  ...transferRecords,
  ...atomicRecords,
  ...laneCopyRecords,
  ...plainBulkCopyRecords,
  ...remoteStoreRecords,
  ...matrixTransferRecords,
  ...fenceRecords,
  ...wgmmaRecords,
};

/** The record of an instruction, whichever it is. */
export function recordOf({ op }: Instruction): InstructionRecord<Opcode> {
  return instructionRecords[op] as InstructionRecord<Opcode>;
}

/** What the values that an instruction leaves stand for. */
export function meaningOf(instruction: Instruction): Effect {
  const { meaning } = recordOf(instruction);
  return typeof meaning === 'function' ? meaning(instruction as never) : meaning;
}

/** The name and operands of an instruction, which a trace shows beside its place in the program. */
export function describeInstruction(instruction: Instruction): InstructionDetails {
  return { op: instruction.op, ...recordOf(instruction).describe(instruction as never) };
}
