export type { KernelVariant } from './variant.js';
export {
  checkVariantApplies,
  findKernelVariant,
  kernelVariants,
  noVariant,
  variantSetting,
} from './variants.js';
