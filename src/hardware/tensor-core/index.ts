export { findTensorCoreArithmetic, tensorCoreArithmetic } from './arithmetic.js';
export type {
  AccumulatorFormat,
  ArithmeticQuery,
  TensorCoreArithmetic,
  TensorCoreEvidence,
} from './arithmetic.js';
export { tensorCoreEvidence } from './evidence.js';
export { fusedDotProduct } from './fused-dot-product.js';
export type { FusedSumArithmetic } from './fused-dot-product.js';
export {
  checkInstructionShape,
  instructionChain,
  instructionLengths,
} from './instruction-shapes.js';
export type { Chain, InstructionShape } from './instruction-shapes.js';
export { tensorCoreProduct } from './matrix-product.js';
export type { MatrixProduct, Patterns } from './matrix-product.js';
export { decodeOperand } from './operand.js';
export type { Operand } from './operand.js';
export { packOperandEncoding } from './operand-encoding.js';
export { operandFormats } from './operand-formats.js';
export type { OperandFormat, OperandFormatName } from './operand-formats.js';
export { createTensorCoreTile } from './tile.js';
export type { TensorCoreTile, TileShape } from './tile.js';
