export {
  recurrentOracle,
  type RecurrentOracleOptions,
  type RecurrentReference,
} from './recurrent-oracle.js';
export {
  recurrentGradients,
  type RecurrentGradientReference,
  type RecurrentGradients,
} from './recurrent-gradients.js';
export { mamba2Recurrence, type Mamba2Recurrence } from './mamba2/plain-problem.js';
