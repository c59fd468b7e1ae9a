export * from './attributed/index.js';
export { fa4Evidence } from './evidence.js';
export { createFa4Forward, type Fa4Forward, type Fa4ForwardOptions } from './forward.js';
export {
  fa4Configuration,
  tileQueries,
  type Fa4Architecture,
  type Fa4Configuration,
} from './forward-configuration.js';
export { createForwardEngine, type ForwardEngine } from './forward-engine.js';
export { fa4Model } from './forward-model.js';
export type { ForwardCounters, ForwardTileResult } from './forward-tile.js';
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
