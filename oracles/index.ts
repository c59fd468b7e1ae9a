export { isAccurate, type Accuracy } from './attention/accuracy.js';
export {
  attentionOracle,
  forEachWeightTile,
  levels,
  type AttentionOracleOptions,
  type AttentionReference,
  type Level,
  type Progress,
  type WeightVisitor,
} from './attention/attention.js';
export type { WeightTile } from './attention/weight-tiles.js';
export { exp2Rounded } from './exp2.js';
export { log2Rounded } from './log2.js';
