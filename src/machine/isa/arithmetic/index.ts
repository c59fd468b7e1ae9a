export { executeArithmetic, executeArithmeticRun } from './execute.js';
export type {
  ArithmeticInstruction,
  ArithmeticUnit,
  PairInstruction,
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
} from './operand.js';
export type { Run, RunLoop } from './instruction.js';
export { allLanes, warpLanes } from '../lanes.js';
