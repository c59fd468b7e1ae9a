export { isAccurate, type Accuracy } from './attention/row.js';
export {
  attentionOracle,
  levels,
  type AttentionOracleOptions,
  type AttentionReference,
  type Level,
  type Progress,
  type ReferenceQuantities,
  type ReferenceQuantity,
  type ScaledReferenceQuantity,
} from './attention/attention.js';
export {
  forEachWeightTile,
  type ProjectedMatrices,
  type WeightTile,
  type WeightVisitor,
  wholeMatrices,
} from './attention/weight-tiles.js';
export type { ProjectionFormat } from './attention/projections.js';
export { exponentRows, type ExponentRow } from './attention/exponent-rows.js';
export { ln2Words, log2eWords } from './attention/logarithm-words.js';
export { WorkingMemories } from '../src/reuse.js';
export {
  attentionGradients,
  gradientNames,
  gradientOracle,
  type AttentionGradients,
  type Gradient,
  type GradientName,
  type GradientOracleOptions,
  type GroupGradients,
  type HeadGradients,
  type SharedGradients,
} from './gradients/index.js';
export * from './selection/index.js';
export {
  gateRecurrence,
  makesGates,
  mamba2Recurrence,
  mamba2Steps,
  recurrentGradients,
  recurrentOracle,
  type Mamba2Recurrence,
  type Mamba2Steps,
  type RecurrentGradientReference,
  type RecurrentGradients,
  type RecurrentOracleOptions,
  type RecurrentReference,
} from './recurrent/index.js';
export {
  createExp2Array,
  createFloat64Exp2,
  doubleDoubleExp2,
  exp2ArrayError,
  exp2Rounded,
  type Float64ArrayFunction,
} from './exp2.js';
export { createLog2Array, log2ArrayError, log2OfDoubleDouble, log2Rounded } from './log2.js';
export {
  reciprocalRounded,
  reciprocalSquareRootError,
  reciprocalSquareRootRounded,
} from './reciprocal.js';
export * from './cache-write/index.js';
export * from './prologue/index.js';
