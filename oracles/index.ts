export { isAccurate, type Accuracy } from './attention/accuracy.js';
export {
  attentionOracle,
  forEachWeightTile,
  levels,
  type AttentionOracleOptions,
  type AttentionReference,
  type Level,
  type Progress,
  type ReferenceQuantities,
  type ReferenceQuantity,
  type ScaledReferenceQuantity,
  type WeightVisitor,
} from './attention/attention.js';
export type { WeightTile } from './attention/weight-tiles.js';
export { createFloat64Exp2 } from './exp2-levels.js';
export { exp2Rounded } from './exp2.js';
export {
  createExp2Array,
  createLog2Array,
  exp2ArrayError,
  log2ArrayError,
  type Float64ArrayFunction,
} from './float64-arrays.js';
export { log2Rounded } from './log2.js';
export {
  reciprocalRounded,
  reciprocalSquareRootError,
  reciprocalSquareRootRounded,
} from './reciprocal.js';
