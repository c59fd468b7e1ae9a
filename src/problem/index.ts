export type { Tensor, TensorData } from '../formats/index.js';
export type { Problem, Window } from './problem.js';
export {
  quantities,
  quantityShape,
  rowElements,
  type Axis,
  type ByQuantity,
  type Quantity,
  type QuantityName,
} from './quantities.js';
export { problemShape, type ProblemShape } from './problem.js';
export {
  areSameRanges,
  clipRanges,
  countKeys,
  hasKey,
  keysOf,
  problemMask,
  spanOf,
  visibleKeys,
  type KeyRange,
  type Mask,
} from './mask.js';
export { scoreLaw, scoreOf, type ScoreAddend, type ScoreLaw } from './score-law.js';
export { maskTile, spanOfRows, type InterruptedRow, type TileView } from './tile-mask.js';
