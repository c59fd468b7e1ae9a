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
