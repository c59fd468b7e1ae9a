export {
  recurrentFamilies,
  type Decay,
  type RecurrentFamily,
  type RecurrentLaw,
  type Write,
} from './families.js';
export { recurrentShape, type RecurrentProblem, type RecurrentShape } from './recurrent-problem.js';
export {
  recurrentOracle,
  type RecurrentOracleOptions,
  type RecurrentReference,
} from './recurrent-oracle.js';
