export {
  plainRecurrentFamilies,
  recurrentFamilies,
  type Decay,
  type RecurrentFamily,
  type RecurrentLaw,
  type Write,
} from './families.js';
export { withHeadGates } from './head-gates.js';
export type { GateInputs } from './made-gates.js';
export {
  recurrentTensorName,
  softplusThreshold,
  usualStepLimit,
  type Mamba2Inputs,
} from './mamba2.js';
export {
  recurrentScale,
  recurrentShape,
  type RecurrentProblem,
  type RecurrentShape,
} from './recurrent-problem.js';
export {
  checkRecurrentGradientInputs,
  recurrentQuantity,
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentQuantityShape,
  type RecurrentGradientInputs,
  type RecurrentQuantity,
  type RecurrentQuantityName,
  type RecurrentResults,
} from './recurrent-quantities.js';
