export {
  compareGradients,
  type GradientComparison,
  type GradientRealOf,
  type GradientReals,
} from './compare-gradients.js';
export { type GradientInputs, type NumbersOf } from './gradient-row.js';
export { gradientNames, type GradientName, type PlacesByGradient } from './gradient-sums.js';
export { namedScales } from './scale-names.js';
