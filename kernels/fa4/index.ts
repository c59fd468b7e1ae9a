export {
  techniques,
  type AttributedTileResult,
  type EmulatedTechniques,
  type Technique,
} from '../online-softmax/attributed/index.js';
export { createAttributedForward, type AttributedForward } from './attributed.js';
export { fa4Recipe, type TileSetting } from './recipe.js';
export type { Recipe } from '../online-softmax/recipe.js';
export { polynomialErrors, type PolynomialError } from '../online-softmax/exp2-polynomial.js';
export { fa4Evidence } from './declarations.js';
export { createFa4Forward, type Fa4Forward, type Fa4ForwardOptions } from './forward.js';
export {
  exponentScale,
  fa4ArchitectureOf,
  fa4Configuration,
  fa4TensorCore,
  type Descale,
  type Fa4Architecture,
  type Fa4Configuration,
} from './configuration.js';
export { tileQueries } from './thread-blocks.js';
export { fa4Formats, type Fa4Format, type Fa4OutFormat } from './configuration.js';
export type { ForwardSteps } from '../online-softmax/steps.js';
export type { ForwardVariation, VariationContext } from './forward.js';
export { combineSplits } from './split-combine.js';
export type { SplitRow } from '../online-softmax/split-tile.js';
export { createForwardEngine, type ForwardEngine } from '../online-softmax/webassembly/engine.js';
export { fa4Model, fa4Arithmetic } from './forward-model.js';
export { fa4Settings, fa4SettingsConfiguration } from './settings.js';
export type { ForwardCounters, ForwardTileResult } from '../online-softmax/query-tiles.js';
export * from './program/index.js';
export { createExp2PolynomialArray } from '../online-softmax/exp2-polynomial.js';
export {
  exp2Coefficients,
  exp2Polynomial,
  exp2PolynomialBits,
  reduceRange,
  type PolynomialDegree,
  type RangeReduction,
} from '../online-softmax/exp2-polynomial.js';
export {
  exp2Pattern,
  exp2Tunings,
  fragmentColumns,
  fragmentsPerRow,
  polynomialColumns,
  polynomialShare,
  usesPolynomial,
  type Exp2Configuration,
  type Exp2Pattern,
  type Exp2Tuning,
} from './exp2-tuning.js';
