export { createRowNumbers, isClustered } from './alike.js';
export { forEachRowsBound } from './bound-rows.js';
export { createAddends, type Addends } from './addend.js';
export { distanceToFormat, outputRounding, roundingSpread, sureDeviations } from './finish.js';
export {
  anyKernelArithmetic,
  judgedArithmetic,
  modelArithmetic,
  modelPremises,
} from './judged-arithmetic.js';
export { internalBound, KernelBound, type RowBound } from './norm-bound.js';
export { followMaximum } from './row-plan.js';
export { tileRows } from './memory.js';
export {
  combinations,
  createCombinedBounds,
  type Bounds,
  type ByTechnique,
  type CombinedBounds,
  type RowsBound,
} from './rows-bound.js';
export {
  fa4Arithmetic,
  naiveArithmetic,
  type ExponentArithmetic,
  type ExponentialArithmetic,
  type FinishArithmetic,
  type KernelArithmetic,
  type MaximumRule,
  type SumArithmetic,
} from '../../../kernels/index.js';
