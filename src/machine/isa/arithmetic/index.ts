export type {
  ArithmeticInstruction,
  ArithmeticUnit,
  PairInstruction,
  WordInstruction,
} from './instruction.js';
export { arithmeticInstructions, findArithmetic } from './instructions.js';
