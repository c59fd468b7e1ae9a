export * from './instruction-descriptor.js';
export { checkMma, mmaFootprint } from './mma-instruction.js';
export type { MmaFootprint, MmaInstruction, MmaOperand } from './mma-instruction.js';
export * from './mma-layout.js';
export * from './mma-unit.js';
