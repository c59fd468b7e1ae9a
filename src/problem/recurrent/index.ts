export {
  recurrentFamilies,
  type Decay,
  type RecurrentFamily,
  type RecurrentLaw,
  type Write,
} from './families.js';
export { recurrentShape, type RecurrentProblem, type RecurrentShape } from './recurrent-problem.js';
export {
  checkRecurrentGradientInputs,
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentQuantityShape,
  type RecurrentGradientInputs,
  type RecurrentQuantity,
  type RecurrentQuantityName,
  type RecurrentResults,
} from './recurrent-quantities.js';
