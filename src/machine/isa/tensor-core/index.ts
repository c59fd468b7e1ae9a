export {
  decodeInstructionDescriptor,
  decodeScaledDescriptor,
  type InstructionDescriptor,
  type MmaKind,
  type ScaledDescriptor,
} from './instruction-descriptor.js';
export type { BlockScales, ScaleOperand } from './block-scales.js';
export {
  mmaFootprint,
  type MmaFootprint,
  type MmaInstruction,
  type MmaOperand,
} from './mma-instruction.js';
export { memoryBits, type MmaAccumulator, type MmaFormatName, usedBytes } from './mma-elements.js';
export * from './mma-layout.js';
export type { MmaCta } from './mma-operands.js';
export type { MachineArchitecture } from './product-cores.js';
export * from './mma-unit.js';
export {
  createWarpgroupProducts,
  elementBytes,
  innerBytes,
  warpRows,
  type FindWarpgroupProduct,
  type WarpgroupProduct,
  type WarpgroupShape,
} from './warpgroup-product.js';
