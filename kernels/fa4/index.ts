export * from './attributed/index.js';
export { fa4Evidence } from './evidence.js';
export { createFa4Forward, type Fa4Forward, type Fa4ForwardOptions } from './forward.js';
export {
  exponentScale,
  fa4Configuration,
  fa4TensorCore,
  tileQueries,
  type Descale,
  type Fa4Architecture,
  type Fa4Configuration,
} from './forward-configuration.js';
export { fa4Formats, type Fa4Format, type Fa4OutFormat } from './forward-formats.js';
export type { ForwardSteps } from './forward-steps.js';
export type { ForwardVariation, VariationContext } from './forward-variation.js';
export { combineSplits, type SplitRow } from './split-combine.js';
export { createForwardEngine, type ForwardEngine } from './forward-engine.js';
export { fa4Model, fa4SettingsConfiguration } from './forward-model.js';
export type { ForwardCounters, ForwardTileResult } from './forward-tile.js';
export * from './program/index.js';
export { createExp2PolynomialArray } from './exp2-array.js';
export {
  exp2Coefficients,
  exp2Polynomial,
  exp2PolynomialBits,
  reduceRange,
  type PolynomialDegree,
  type RangeReduction,
} from './exp2.js';
export {
  exp2Pattern,
  exp2Tunings,
  fragmentColumns,
  fragmentsPerRow,
  polynomialShare,
  usesPolynomial,
  type Exp2Configuration,
  type Exp2Pattern,
  type Exp2Tuning,
} from './exp2-tuning.js';
