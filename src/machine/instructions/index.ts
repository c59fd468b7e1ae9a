export { hasAtomic, meaningOfAtomic } from './memory/atomic-operations.js';
export { touchMemory } from './issue.js';
export { noMemory, noRegisters, nothing, type InstructionRecord } from './record.js';
export { leaveBarriers } from './threads.js';
export { createRegisterPool, mostRegisters } from './register-counts.js';
export { reportApart } from './warpgroups.js';
export { describeInstruction, instructionRecords, meaningOf, recordOf } from './records.js';
