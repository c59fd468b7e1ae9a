export {
  attributeError,
  attributeLag,
  type AttributionOptions,
  type LagAttribution,
} from './attribute.js';
export type {
  AttributedConfiguration,
  Attribution,
  Interaction,
  TechniqueAttribution,
  TechniquePart,
  WeightRounding,
} from './attribution.js';
export { defaultCandidates, type Candidate } from './candidates.js';
export type { ErrorMeasure, Place, Spread } from './error-measure.js';
export {
  identifyKernel,
  type Identification,
  type IdentificationOptions,
  type Match,
} from './identify-kernel.js';
export type { MaximumLag } from './maximum-lag.js';
export { renderAttribution } from './render-attribution.js';
export { renderIdentification } from './render-identification.js';
export { renderShares, type ShareChoice } from './render-shares.js';
