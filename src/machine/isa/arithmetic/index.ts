export { executeArithmeticRun } from './instructions.js';
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
  register,
  registerRun,
  registersOf,
  type WarpRegisters,
} from './instruction.js';
export { allLanes, warpLanes, type Operand, type Run, type RunLoop } from '../../../isa/index.js';
