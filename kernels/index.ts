export type { KernelModel, KernelPiece, KernelSetting, PreparedKernel } from './kernel-model.js';
export { findKernelModel, kernelModels } from './models.js';
export * from './naive/index.js';
export { textbookAttention } from './textbook-attention.js';
export * from './fa4/index.js';
