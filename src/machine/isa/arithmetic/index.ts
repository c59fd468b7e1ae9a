export { executeArithmetic, executeArithmeticRun } from './execute.js';
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
} from './operand.js';
export { allLanes, warpLanes } from '../lanes.js';
