export {
  dimensionNames,
  dimensions,
  limitedDimensions,
  usualLimits,
  valueNames,
  type DimensionName,
  type LimitedDimension,
} from './dimensions.js';
export {
  findInvariance,
  type ChangedRows,
  type DimensionResult,
  type Invariance,
  type InvarianceChange,
  type InvarianceOptions,
} from './find-invariance.js';
export type { QuantityChange, RowChange } from './row-change.js';
export type { ComparedRow } from './scene.js';
