export { touchMemory } from './issue.js';
export { noMemory, noRegisters, nothing } from './record.js';
export type {
  AsynchronousUnit,
  InstructionDetails,
  InstructionRecord,
  InstructionRecords,
  Readiness,
  SynchronousUnit,
  Touched,
} from './record.js';
export { describeInstruction, instructionRecords, recordOf } from './records.js';
