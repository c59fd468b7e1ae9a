export {
  recurrentOracle,
  type RecurrentOracleOptions,
  type RecurrentReference,
} from './recurrent-oracle.js';
