export { largestOfGroups, quantiseIntegers, type IntegerRule, type Integers } from './integers.js';
export {
  describeQuantisation,
  quantisationOf,
  type OperandQuantisation,
  type Quantisation,
} from './quantisation.js';
export {
  quantiseProblem,
  type QuantisationSteps,
  type QuantisedProblem,
} from './quantise-problem.js';
export { rowGroups, type RowGroups } from './row-groups.js';
export { smoothKeys, type SmoothedKeys } from './smoothing.js';
