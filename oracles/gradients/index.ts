export { attentionGradients, type AttentionGradients } from './collect.js';
export {
  gradientNames,
  gradientOracle,
  type GradientName,
  type GradientOracleOptions,
  type GroupGradients,
  type SharedGradients,
} from './gradients.js';
export type { HeadGradients } from './head-level.js';
export type { Gradient } from './sums.js';
