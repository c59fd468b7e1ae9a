export {
  attributeError,
  attributeLag,
  type AttributionOptions,
  type LagAttribution,
} from './attribute.js';
export { attributeTiles, type AttributedTilesOptions } from './attribute-tiles.js';
export type {
  Attribution,
  Interaction,
  TechniqueAttribution,
  TechniquePart,
  WeightRounding,
} from './attribution.js';
export { candidatesOf, defaultCandidates, type Candidate } from './candidates.js';
export type { ErrorMeasure } from './error-measure.js';
export {
  identifyKernel,
  type Identification,
  type IdentificationOptions,
  type Match,
} from './identify-kernel.js';
export { attributedKernel, type KernelChoice } from './kernel-choice.js';
export type { LseMeasure } from './lse-measure.js';
export {
  isEqualThroughout,
  significantLikeness,
  type LseMatch,
  type MatchMeasure,
} from './match-meter.js';
export type { MaximumLag } from './maximum-lag.js';
export type { Spread } from './running-spread.js';
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
