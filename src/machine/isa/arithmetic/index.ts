export { executeArithmetic, executeArithmeticRun } from './instructions.js';
export type {
  ArithmeticInstruction,
  ArithmeticUnit,
  PairInstruction,
  Run,
  RunLoop,
  WordInstruction,
} from './instruction.js';
export { arithmeticInstructions, findArithmetic } from './instructions.js';
export {
  createRegisters,
  immediate,
  immediateFloat32,
  immediatePair,
  register,
  registerRun,
  registersOf,
  type Operand,
  type WarpRegisters,
} from './instruction.js';
export { allLanes, warpLanes } from './instruction.js';
