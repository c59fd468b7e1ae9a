export { createGradientBounds, type BoundedGradients } from './gradient-bounds.js';
export {
  anyGradientPremises,
  eagerGradientPremises,
  type DeltaSource,
  type GradientPremises,
} from './gradient-premises.js';
export {
  type GradientBound,
  type GroupBounds,
  type HeadBounds,
  type StoredForward,
} from './group-bounds.js';
