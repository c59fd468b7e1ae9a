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
export type { WeightTile } from './attention/tile-level.js';
