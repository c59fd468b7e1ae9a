export * from './instruction-descriptor.js';
export {
  checkMma,
  mmaFootprint,
  type MmaFootprint,
  type MmaInstruction,
  type MmaOperand,
} from './mma-instruction.js';
export * from './mma-layout.js';
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
