export { createRowNumbers } from './alike-rows.js';
export { isClustered } from './alike-weights.js';
export { anyKernelArithmetic } from './any-kernel-arithmetic.js';
export { forEachRowsBound } from './bound-problem.js';

export { fa4Arithmetic, naiveArithmetic } from '../../../kernels/index.js';
export type {
  ExponentArithmetic,
  ExponentialArithmetic,
  FinishArithmetic,
  KernelArithmetic,
  MaximumRule,
  SumArithmetic,
} from './kernel-arithmetic.js';
export { followMaximum } from './maximum-path.js';
export { internalBound, KernelBound, type RowBound } from './norm-bound.js';
export { outputRounding } from './output-round.js';
export {
  combinations,
  createCombinedBounds,
  type Bounds,
  type ByTechnique,
  type CombinedBounds,
  type RowsBound,
} from './rows-bound.js';
export { judgedArithmetic, modelArithmetic, modelPremises } from './model-arithmetic.js';
