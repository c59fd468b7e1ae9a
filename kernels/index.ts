export type {
  AttributedKernel,
  AttributedPiece,
  EmulatedNames,
  LargestWeights,
  TechniqueDefinition,
} from './attributed-kernel.js';
export type { KernelModel, KernelPiece, KernelSetting, PreparedKernel } from './kernel-model.js';
export { findKernelModel, kernelModels } from './models.js';
export {
  assembleKernelPieces,
  runKernelModel,
  type KernelAssembly,
  type KernelResults,
} from './run-kernel-model.js';
export * from './naive/index.js';
export { textbookAttention } from './textbook-attention.js';
export * from './fa4/index.js';
export { attributeFa4 } from './fa4/forward-model.js';
export {
  findKernelVariant,
  kernelVariants,
  noVariant,
  type KernelVariant,
} from './variants/index.js';
