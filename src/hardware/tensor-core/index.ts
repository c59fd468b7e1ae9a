export {
  findTensorCoreArithmetic,
  tensorCoreArithmetic,
  tensorCoreEvidence,
  type AccumulatorFormat,
  type ArithmeticQuery,
  type TensorCoreArithmetic,
  type TensorCoreEvidence,
} from './arithmetic.js';
export {
  blockScaledArithmetic,
  createBlockScaledProduct,
  findBlockScaledArithmetic,
  type BlockScaledArithmetic,
  type BlockScaledKind,
  type BlockScaledProduct,
  type BlockScaledQuery,
  type ScaleFormatName,
} from './block-scaled-product.js';
export { fusedDotProduct, type FusedSumArithmetic } from './fused-dot-product.js';
export {
  instructionChain,
  instructionLengths,
  type Chain,
  type InstructionShape,
} from './instructions.js';
export { tensorCoreProduct, type MatrixProduct, type Patterns } from './matrix-product.js';
export {
  decodeOperand,
  operandFormats,
  packOperandEncoding,
  type Operand,
  type OperandFormat,
  type OperandFormatName,
} from './operand.js';
export { createTensorCoreTile, type TensorCoreTile, type TileShape } from './tile.js';
