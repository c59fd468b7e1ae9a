import { alwaysReady, movesNothing, type InstructionRecords } from '../record.js';

/**
 * Fences of the memory model: with strong accesses before and after them they order a warp's accesses with those of
 * others in the scope. Source: PTX ISA, `fence`, `membar`, "Release and Acquire Patterns".
 */
export const fenceRecords: InstructionRecords<'fence'> = {
  fence: {
    ...movesNothing,
    ready: alwaysReady,
    isWait: false,
    describe: ({ scope }) => ({ scope }),
    execute: ({ tracker }, warp, { scope }) => tracker?.fenceMemory(warp, scope),
  },
};
