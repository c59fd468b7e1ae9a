export {
  attributeError,
  attributeLag,
  type AttributionOptions,
  type LagAttribution,
} from './attribute.js';
export { attributeTiles, type AttributedTilesOptions } from './tile-errors.js';
export type {
  Attribution,
  Interaction,
  MaximumLag,
  TechniqueAttribution,
  TechniquePart,
  WeightRounding,
} from './attribution.js';
export type { ErrorMeasure, LseMeasure, Spread } from './error-measure.js';
export {
  identifyKernel,
  type Identification,
  type IdentificationOptions,
  type Match,
} from './identify-kernel.js';
export {
  attributedKernel,
  candidatesOf,
  defaultCandidates,
  type Candidate,
  type KernelChoice,
} from './kernel-choice.js';
export {
  isEqualThroughout,
  significantLikeness,
  type LseMatch,
  type MatchMeasure,
} from './match-meter.js';
export type { TechniqueMatch, TechniqueSearch } from './technique-search.js';
export type { RowErrors, TileErrors } from './tile-errors.js';
export {
  createTechniqueTable,
  type BoundMeasure,
  type MeasuredError,
  type TechniqueLine,
  type TechniqueTable,
  type TechniqueTableMeter,
  type TechniqueTableOptions,
} from './technique-table.js';
export { gradientLikeness, type GradientLikeness } from './gradient-likeness.js';
