export { createGradientBounds, type BoundedGradients } from './gradient-bounds.js';
export {
  gradientTechniques,
  placeCount,
  techniquesByPlace,
  type GradientTechnique,
  type TechniqueShares,
} from './gradient-techniques.js';
export {
  anyGradientPremises,
  eagerGradientPremises,
  hardwareTanh,
  kernelGradientPremises,
  type DeltaSource,
  type GradientPremises,
} from './gradient-premises.js';
export { deltaFormats, storedMean } from './stored-mean.js';
export type {
  GradientTechniqueBound,
  GroupBounds,
  HeadBounds,
  GradientBound,
  StoredForward,
} from './group-bounds.js';
export {
  addToTable,
  emptyTechniqueSums,
  techniqueTable,
  type GradientTechniqueTable,
  type GradientTechniqueLine,
} from './technique-table.js';
export { createSharedBounds, type SharedBounds, type SharedFormats } from './shared-bounds.js';
